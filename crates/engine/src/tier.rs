//! How much of the engine's compilers is used.

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

    /// The variables that choose the tier when they are in the environment of a process before it starts the engine.
    ///
    /// [`Engine::initialise`](crate::Engine::initialise) and [`Engine::configure`](crate::Engine::configure) do the same
    /// without them.
    pub fn environment(self) -> &'static [(&'static str, &'static str)] {
        // WebAssembly is off because its faults are signals, and the guest has no use for it. Without the concurrent
        // collector nothing else runs while the guest does. Polling traps stop compiled code without signals.
        match self {
            Self::Off => &[
                ("JSC_useJIT", "0"),
                ("JSC_useWasm", "0"),
                ("JSC_useConcurrentGC", "0"),
                ("JSC_numberOfGCMarkers", "1"),
            ],
            Self::Baseline => &[
                ("JSC_useDFGJIT", "0"),
                ("JSC_useWasm", "0"),
                ("JSC_useConcurrentGC", "0"),
                ("JSC_numberOfGCMarkers", "1"),
                ("JSC_usePollingTraps", "1"),
            ],
            Self::Full => &[("JSC_useWasm", "0"), ("JSC_usePollingTraps", "1")],
        }
    }

    /// The same as [`environment`](Self::environment), for setting them through the engine itself.
    pub(crate) fn options(self) -> impl Iterator<Item = EngineOption> {
        self.environment().iter().map(|&(variable, value)| {
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
