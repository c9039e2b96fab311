//! Finding the engine's library, and saying what to install where there is none.

use std::ffi::{CString, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use crate::ffi::{Library, MissingSymbol, Table};

/// The variable that names another library, by path or soname.
const OVERRIDE: &str = "PYDENO_JSC";

/// The sonames of the engine, newest first; on macOS the framework of the system.
const NAMES: &[&str] = if cfg!(target_os = "macos") {
    &["/System/Library/Frameworks/JavaScriptCore.framework/JavaScriptCore"]
} else {
    &["libjavascriptcoregtk-6.0.so.1", "libjavascriptcoregtk-4.1.so.0", "libjavascriptcoregtk-4.0.so.18"]
};

/// Why there is no engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineUnavailable {
    /// No library of any known name could be opened.
    NotFound {
        /// Each name that was tried, with the dynamic linker's words.
        tried: Vec<(String, String)>,
        /// The command that installs the engine on this distribution.
        install: String,
    },
    /// The library that `PYDENO_JSC` names could not be opened.
    OverrideFailed {
        /// The variable's value.
        name: String,
        /// The dynamic linker's words.
        reason: String,
    },
    /// A library was opened that lacks a function which every supported engine has.
    Outdated {
        /// The library.
        library: String,
        /// The function's name.
        symbol: String,
        /// The command that installs the engine on this distribution.
        install: String,
    },
}

impl fmt::Display for EngineUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { tried, install } => {
                write!(
                    f,
                    "JavaScriptCore is not installed; {install}, or set {OVERRIDE} to its library (tried"
                )?;
                for (index, (name, reason)) in tried.iter().enumerate() {
                    let separator = if index == 0 { " " } else { "; " };
                    // The linker's words begin with the name.
                    if reason.starts_with(name.as_str()) {
                        write!(f, "{separator}{reason}")?;
                    } else {
                        write!(f, "{separator}{name}: {reason}")?;
                    }
                }
                f.write_str(")")
            }
            Self::OverrideFailed { name, reason } => write!(
                f,
                "{OVERRIDE} is set to {name:?}, which could not be loaded ({reason}); correct it, or unset it to \
                 use the system's JavaScriptCore"
            ),
            Self::Outdated { library, symbol, install } => write!(
                f,
                "{library} is too old, it lacks {symbol}; update the system, or {install}, or set {OVERRIDE} to a \
                 newer JavaScriptCore"
            ),
        }
    }
}

impl std::error::Error for EngineUnavailable {}

/// Opens the engine and looks its functions up.
pub(crate) fn find() -> Result<(Table, String), EngineUnavailable> {
    if let Some(name) = std::env::var_os(OVERRIDE).filter(|name| !name.is_empty()) {
        let shown = name.to_string_lossy().into_owned();
        let library = open(&name)
            .map_err(|reason| EngineUnavailable::OverrideFailed { name: shown.clone(), reason })?;
        return resolve(&library, shown);
    }
    let mut tried = Vec::new();
    for &name in NAMES {
        match open(&OsString::from(name)) {
            Ok(library) => return resolve(&library, name.to_owned()),
            Err(reason) => tried.push((name.to_owned(), reason)),
        }
    }
    Err(EngineUnavailable::NotFound { tried, install: install_command() })
}

fn open(name: &OsString) -> Result<Library, String> {
    let name = CString::new(name.as_bytes()).map_err(|_| "the name holds a NUL".to_owned())?;
    Library::open(&name)
}

fn resolve(library: &Library, name: String) -> Result<(Table, String), EngineUnavailable> {
    match Table::resolve(library) {
        Ok(table) => Ok((table, name)),
        Err(missing @ MissingSymbol(_)) => Err(EngineUnavailable::Outdated {
            library: name,
            symbol: missing.to_string(),
            install: install_command(),
        }),
    }
}

fn install_command() -> String {
    let release = ["/etc/os-release", "/usr/lib/os-release"]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok())
        .unwrap_or_default();
    command_for(&release).to_owned()
}

/// What installs the engine, for the distribution that this `os-release` describes.
fn command_for(os_release: &str) -> &'static str {
    let field = |key: &str| {
        os_release
            .lines()
            .filter_map(|line| line.trim().split_once('='))
            .find(|(name, _)| *name == key)
            .map_or("", |(_, value)| value.trim_matches(['"', '\'']))
    };
    let related = [field("ID"), field("ID_LIKE")];
    for name in related.iter().flat_map(|names| names.split_ascii_whitespace()) {
        match name {
            "debian" | "ubuntu" => return "run `apt-get install libjavascriptcoregtk-4.1-0`",
            "fedora" | "rhel" | "centos" => return "run `dnf install javascriptcoregtk4.1`",
            "arch" => return "run `pacman -S webkit2gtk-4.1`",
            "alpine" => return "run `apk add webkit2gtk-4.1`",
            "suse" | "opensuse" => return "run `zypper install libjavascriptcoregtk-4_1-0`",
            _ => {}
        }
    }
    "install the package with libjavascriptcoregtk-4.1.so.0 (a part of WebKitGTK)"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_the_one_of_the_distribution_or_of_one_like_it() {
        assert!(command_for("ID=debian\nVERSION_ID=\"12\"\n").contains("apt-get"));
        assert!(command_for("ID=pop\nID_LIKE=\"ubuntu debian\"\n").contains("apt-get"));
        assert!(command_for("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n").contains("dnf"));
        assert!(command_for("ID='alpine'\n").contains("apk"));
        assert!(command_for("ID=arch").contains("pacman"));
    }

    #[test]
    fn an_unknown_distribution_is_told_the_file_to_look_for() {
        assert!(command_for("ID=plan9\n").contains("libjavascriptcoregtk-4.1.so.0"));
        assert!(command_for("").contains("libjavascriptcoregtk-4.1.so.0"));
    }

    #[test]
    fn the_text_names_the_package_and_every_library_that_was_tried() {
        let error = EngineUnavailable::NotFound {
            tried: vec![
                ("liba.so".into(), "liba.so: cannot open".into()),
                ("libb.so".into(), "no memory".into()),
            ],
            install: command_for("ID=debian").to_owned(),
        };
        assert_eq!(
            error.to_string(),
            "JavaScriptCore is not installed; run `apt-get install libjavascriptcoregtk-4.1-0`, or set PYDENO_JSC to \
             its library (tried liba.so: cannot open; libb.so: no memory)"
        );
    }
}
