//! A status for people: a line for a log, and the whole of it.

use std::fmt;

use super::{REQUIRED, SandboxStatus};

impl SandboxStatus {
    /// One sentence for each layer that could be in force here and is not.
    pub fn warnings(&self) -> Vec<String> {
        self.missing()
            .map(|layer| {
                let weight = if REQUIRED.contains(&layer.name.as_str()) { "required" } else { "a bonus" };
                format!("{} ({weight}) is not in force: {}", layer.name, layer.detail)
            })
            .collect()
    }

    /// Every layer on a line of its own, what would fix those that are missing, and what follows from it all.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        for layer in &self.layers {
            let state = match (layer.applied, layer.fix.is_empty()) {
                (true, _) => "yes",
                (false, true) => "-",
                (false, false) => "NO",
            };
            text.push_str(&format!("{:<15} {state:<3}  {}\n", layer.name, layer.detail));
            if !layer.fix.is_empty() {
                text.push_str(&format!("{:<21}to fix: {}\n", "", layer.fix));
            }
        }
        text.push_str(match (self.is_complete(), self.is_hardened()) {
            (_, true) => "The sandbox is complete and hardened: sandbox=\"require\" starts here.\n",
            (true, false) => {
                "The sandbox is complete, without an empty root: sandbox=\"require\" starts here.\n"
            }
            (false, _) => "The sandbox is not complete: sandbox=\"require\" refuses to start here.\n",
        });
        text
    }
}

impl fmt::Display for SandboxStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match (self.is_complete(), self.is_hardened()) {
            (_, true) => "hardened",
            (true, false) => "complete",
            (false, _) => "incomplete",
        };
        write!(f, "sandbox {state} on {} {}: {}", self.platform(), self.kernel, self.applied())?;
        let missing: Vec<&str> = self.missing().map(|layer| layer.name.as_str()).collect();
        if missing.is_empty() { Ok(()) } else { write!(f, "; not in force: {}", missing.join(", ")) }
    }
}
