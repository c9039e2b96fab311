//! How much of the engine is used: its compilers, and WebAssembly.

/// The engine's JIT tiers. A property of the process: the engine reads its options once, when it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tier {
    /// The interpreter alone. The process never maps executable memory, and the deadline's timer is the engine's only
    /// other thread.
    #[default]
    Off,
    /// The baseline compiler: cheap to compile, two to three times as fast.
    Baseline,
    /// Every optimising compiler, with threads of their own.
    Full,
}

/// What a process uses of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// The compilers.
    pub tier: Tier,
    /// Whether isolates that ask for it have `WebAssembly`.
    pub webassembly: bool,
}

impl From<Tier> for Features {
    /// Without WebAssembly.
    fn from(tier: Tier) -> Self {
        Self { tier, webassembly: false }
    }
}

/// An option of the engine: its name, and its value.
#[derive(Clone, Copy)]
pub(crate) enum EngineOption {
    Switch(&'static str, bool),
    Count(&'static str, u32),
}

impl Tier {
    /// The name by which users choose the tier: `off`, `baseline` or `full`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Baseline => "baseline",
            Self::Full => "full",
        }
    }

    /// The tier of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Off, Self::Baseline, Self::Full].into_iter().find(|tier| tier.name() == name)
    }
}

impl Features {
    /// The variables that choose the features when they are in the environment of a process before it starts the engine.
    ///
    /// [`Engine::initialise`](crate::Engine::initialise) and [`Engine::configure`](crate::Engine::configure) do the same
    /// without them.
    pub fn environment(self) -> Vec<(&'static str, &'static str)> {
        // Without the concurrent collector nothing else runs while the guest does. Polling traps stop compiled code without
        // signals.
        let mut variables = match self.tier {
            Tier::Off => {
                vec![("JSC_useJIT", "0"), ("JSC_useConcurrentGC", "0"), ("JSC_numberOfGCMarkers", "1")]
            }
            Tier::Baseline => vec![
                ("JSC_useDFGJIT", "0"),
                ("JSC_useConcurrentGC", "0"),
                ("JSC_numberOfGCMarkers", "1"),
                ("JSC_usePollingTraps", "1"),
            ],
            Tier::Full => vec![("JSC_usePollingTraps", "1")],
        };
        if self.webassembly {
            // Every access is compared with the memory's bounds. Otherwise the engine reserves gigabytes of addresses for each
            // memory and takes the fault of an access beyond it as a signal.
            variables.extend([("JSC_useWasmFastMemory", "0"), ("JSC_useWasmFaultSignalHandler", "0")]);
        } else {
            variables.push(("JSC_useWasm", "0"));
        }
        variables
    }

    /// The same as [`environment`](Self::environment), for setting them through the engine itself.
    pub(crate) fn options(self) -> impl Iterator<Item = EngineOption> {
        self.environment().into_iter().map(|(variable, value)| {
            let name = variable.trim_start_matches("JSC_");
            match name {
                "numberOfGCMarkers" => EngineOption::Count(name, 1),
                _ => EngineOption::Switch(name, value == "1"),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_is_found_by_its_name_and_by_no_other() {
        for tier in [Tier::Off, Tier::Baseline, Tier::Full] {
            assert_eq!(Tier::from_name(tier.name()), Some(tier));
        }
        assert_eq!(Tier::from_name("OFF"), None);
        assert_eq!(Tier::from_name(""), None);
    }
}
