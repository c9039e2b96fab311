//! Finding the worker's executable from the command's own place.

use std::path::{Path, PathBuf};
use std::{env, fs};

use pydeno_host::{Error, WorkerBinary};

const WORKER: &str = "pydeno-worker";

/// The worker that was installed with this command. It is looked for beside the command and where installers put the
/// package that the command came with, never in `PATH`.
pub(crate) fn find() -> Result<WorkerBinary, Error> {
    let unavailable = |reason: String| Error::WorkerUnavailable { reason };
    let command =
        env::current_exe().map_err(|error| unavailable(format!("where this command lies: {error}")))?;
    let folder = command.parent().unwrap_or(Path::new("/"));
    candidates(folder)
        .into_iter()
        .find(|path| path.is_file())
        .map(|path| WorkerBinary {
            path,
            engine_library: env::var_os("PYDENO_JSC").filter(|path| !path.is_empty()),
        })
        .ok_or_else(|| {
            unavailable(format!(
                "no {WORKER} belongs to {}: the installation is incomplete; install pydeno again",
                command.display()
            ))
        })
}

/// Beside the command (a build tree), in the package next to its folder (`pip install --target`), and in the site
/// packages of the interpreters under the same prefix (a virtual environment, a user's or the system's).
fn candidates(folder: &Path) -> Vec<PathBuf> {
    let prefix = folder.parent().unwrap_or(folder);
    let mut found = vec![folder.join(WORKER), prefix.join("pydeno").join(WORKER)];
    for library in ["lib", "lib64"] {
        let Ok(entries) = fs::read_dir(prefix.join(library)) else { continue };
        let mut interpreters: Vec<PathBuf> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
            .map(|entry| entry.path())
            .collect();
        interpreters.sort();
        for interpreter in interpreters {
            for packages in ["site-packages", "dist-packages"] {
                found.push(interpreter.join(packages).join("pydeno").join(WORKER));
            }
        }
    }
    found
}
