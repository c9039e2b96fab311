//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::ValueExt as _;
use lexopt::prelude::{Long, Short, Value};
use pydeno_host::{JitTier, Options, WorkerStart};
use pydeno_wire::message::SandboxMode;

/// What `pydeno --help` prints.
pub(crate) const HELP: &str = "\
pydeno: run JavaScript that nobody has vetted, in a confined process, and print its value as JSON

  pydeno CODE             evaluate CODE
  pydeno -c CODE          the same, for code that starts with a dash
  pydeno -f FILE          evaluate a file: .ts and .mts as TypeScript, .mjs and .mts as a module, whose default export is printed, or
                          all where there is none; there are no modules to import
  pydeno -                evaluate standard input
  pydeno check FILE...    say what the files ask for that the sandbox does not have; - is standard input
  pydeno doctor           what the sandbox can be on this machine, and which engine there is

  --timeout SECONDS       how long the script may run (30)
  --max-memory BYTES      its process's private memory; K, M and G are understood (1G)
  --max-output BYTES      what may be printed (16M)
  --sandbox MODE          require (the default), auto or off
  --jit TIER              off (the default), baseline or full
  --json                  print an object: {\"ok\": true, \"value\": ...} or {\"ok\": false, \"error\": {...}}
  --sarif                 print the findings of a check for code-scanning tools
  --allow-import          let a check pass `import` and `export` declarations
  --allow-dynamic-import  let a check pass `import(...)`
  --raw                   print a string as it is, without quotes
  -h, --help              this text
  -V, --version           the version

The exit code is 0 for a value, 1 for a JavaScript error or an error that a check found, 2 for wrong usage, 3 for a timeout, 4 when the sandbox or the
engine is not available, 5 for any other failure, 6 when the value has no JSON form.
";

/// The largest script, in bytes.
pub(crate) const MAX_INPUT: u64 = 16 << 20;

/// A parsed command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) command: Command,
    pub(crate) options: Options,
    pub(crate) output: Output,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Evaluate(Input),
    Check(Checks),
    Doctor,
    Help,
    Version,
}

/// Where the script comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Code(OsString),
    File(PathBuf),
    Stdin,
}

/// What is to be checked, and how.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Checks {
    /// `-` is standard input.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) options: pydeno_preflight::Options,
    pub(crate) listing: Listing,
}

/// How the findings of a check are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    Lines,
    Json,
    Sarif,
}

/// How the value is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    pub(crate) raw: bool,
    pub(crate) max_bytes: u64,
}

impl Arguments {
    pub(crate) fn parse(mut parser: lexopt::Parser) -> Result<Self, lexopt::Error> {
        let mut command = None;
        let mut checks: Option<Vec<PathBuf>> = None;
        let mut check_options = pydeno_preflight::Options::default();
        let mut sarif = false;
        // One evaluation needs no worker ahead for the next.
        let mut options = Options { worker_start: WorkerStart::Exec, ..Options::default() };
        let mut output = Output { json: false, raw: false, max_bytes: 16 << 20 };
        while let Some(argument) = parser.next()? {
            let next = match argument {
                Value(file) if checks.is_some() => {
                    checks.get_or_insert_default().push(file.into());
                    continue;
                }
                Value(word) if word == "check" && command.is_none() => {
                    checks = Some(Vec::new());
                    continue;
                }
                Long("sarif") => {
                    sarif = true;
                    continue;
                }
                Long("allow-import") => {
                    check_options.allow_import = true;
                    continue;
                }
                Long("allow-dynamic-import") => {
                    check_options.allow_dynamic_import = true;
                    continue;
                }
                Short('c') => Command::Evaluate(Input::Code(parser.value()?)),
                Short('f') => Command::Evaluate(Input::File(parser.value()?.into())),
                Value(word) if word == "-" => Command::Evaluate(Input::Stdin),
                Value(word) if word == "doctor" => Command::Doctor,
                Value(word) => Command::Evaluate(Input::Code(word)),
                Short('h') | Long("help") => Command::Help,
                Short('V') | Long("version") => Command::Version,
                Long(option) => {
                    let option = option.to_owned();
                    set(&option, &mut parser, &mut options, &mut output)?;
                    continue;
                }
                Short(_) => return Err(argument.unexpected()),
            };
            if matches!(next, Command::Help | Command::Version) {
                return Ok(Self { command: next, options, output });
            }
            if command.replace(next).is_some() {
                return Err("more than one script is given; quote the code as one argument".into());
            }
        }
        if let Some(paths) = checks {
            let listing = match (output.json, sarif) {
                (true, true) => return Err("--json and --sarif exclude each other".into()),
                (true, false) => Listing::Json,
                (false, true) => Listing::Sarif,
                (false, false) => Listing::Lines,
            };
            if paths.is_empty() {
                return Err("no file to check is given; - is standard input".into());
            }
            if command.is_some() {
                return Err("files are checked or code is run, not both".into());
            }
            command = Some(Command::Check(Checks { paths, options: check_options, listing }));
        } else if sarif || check_options != pydeno_preflight::Options::default() {
            return Err("--sarif and --allow-... are options of `pydeno check`".into());
        }
        let command = command.ok_or("no script is given")?;
        options.request_timeout = options.request_timeout.max(options.timeout);
        Ok(Self { command, options, output })
    }
}

fn set(
    option: &str,
    parser: &mut lexopt::Parser,
    options: &mut Options,
    output: &mut Output,
) -> Result<(), lexopt::Error> {
    match option {
        "timeout" => options.timeout = parser.value()?.parse_with(seconds)?,
        "max-memory" => {
            options.max_memory = parser.value()?.parse_with(bytes)?;
            options.max_heap_size = options.max_memory;
        }
        "max-output" => output.max_bytes = parser.value()?.parse_with(bytes)?,
        "sandbox" => options.sandbox = parser.value()?.parse_with(sandbox)?,
        "jit" => {
            let tier = |name: &str| JitTier::from_name(name).ok_or("it is off, baseline or full");
            options.jit = parser.value()?.parse_with(tier)?;
        }
        "json" => output.json = true,
        "raw" => output.raw = true,
        _ => return Err(Long(option).unexpected()),
    }
    Ok(())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let value: f64 = text.parse().map_err(|_| "it is a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(value) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("it must be more than zero".to_owned()),
    }
}

fn bytes(text: &str) -> Result<u64, &'static str> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits
        .parse::<u64>()
        .ok()
        .filter(|&value| value > 0)
        .and_then(|value| value.checked_mul(1 << shift))
        .ok_or("it is a number of bytes, such as 1048576 or 512M")
}

fn sandbox(name: &str) -> Result<SandboxMode, &'static str> {
    match name {
        "require" => Ok(SandboxMode::Require),
        "auto" => Ok(SandboxMode::Auto),
        "off" => Ok(SandboxMode::Off),
        _ => Err("it is require, auto or off"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Arguments, lexopt::Error> {
        Arguments::parse(lexopt::Parser::from_args(arguments))
    }

    #[test]
    fn the_script_comes_from_one_place() {
        let code = Command::Evaluate(Input::Code("1+1".into()));
        assert_eq!(parse(&["1+1"]).unwrap().command, code);
        assert_eq!(parse(&["-c", "1+1"]).unwrap().command, code);
        assert_eq!(parse(&["-f", "a.js"]).unwrap().command, Command::Evaluate(Input::File("a.js".into())));
        assert_eq!(parse(&["-"]).unwrap().command, Command::Evaluate(Input::Stdin));
        assert!(parse(&["1", "2"]).is_err());
        assert!(parse(&[]).is_err());
    }

    #[test]
    fn a_check_takes_several_files_and_lists_them_in_one_way() {
        let Command::Check(checks) = parse(&["check", "a.js", "-", "--sarif"]).unwrap().command else {
            panic!("that is a check");
        };
        assert_eq!(checks.paths, ["a.js", "-"].map(PathBuf::from));
        assert_eq!(checks.listing, Listing::Sarif);
        for wrong in [
            &["check"][..],
            &["check", "a.js", "--json", "--sarif"],
            &["check", "a.js", "-c", "1"],
            &["1", "--sarif"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn limits_are_read_with_their_units() {
        let arguments = parse(&["1", "--timeout", "1.5", "--max-memory=512M", "--jit", "full"]).unwrap();
        assert_eq!(arguments.options.timeout, Duration::from_millis(1500));
        assert_eq!(arguments.options.max_memory, 512 << 20);
        assert_eq!(arguments.options.jit, JitTier::Full);
    }

    #[test]
    fn a_timeout_longer_than_the_whole_requests_lengthens_that() {
        let arguments = parse(&["1", "--timeout", "300"]).unwrap();
        assert_eq!(arguments.options.request_timeout, Duration::from_secs(300));
    }

    #[test]
    fn nonsense_is_refused() {
        for wrong in [
            &["1", "--timeout", "-1"][..],
            &["1", "--timeout", "0"],
            &["1", "--timeout", "NaN"],
            &["1", "--max-memory", "0"],
            &["1", "--max-memory", "99999999999999999999G"],
            &["1", "--sandbox", "maybe"],
            &["1", "--nope"],
            &["-x"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
