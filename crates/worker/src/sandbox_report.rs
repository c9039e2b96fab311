//! A sandbox's report in the words of the wire.

use pydeno_sandbox::{Layer, Report};
use pydeno_wire::message::{LayerReport, SandboxMode, SandboxReport};

pub(crate) fn to_wire(report: &Report) -> SandboxReport {
    let layers = report
        .layers
        .iter()
        .map(|layer| LayerReport {
            name: layer.name.to_owned(),
            applied: layer.applied,
            detail: layer.detail.clone(),
            fix: layer.fix.clone(),
        })
        .collect();
    SandboxReport { layers }
}

/// Adds what the throwaway child proved, or did not, to the layer that it is about. Whether it was proved.
///
/// A worker cannot try the forbidden call itself: where the filter works, that is its end.
pub(crate) fn include(report: &mut Report, proof: &Layer) -> bool {
    if let Some(layer) = report.layers.iter_mut().find(|layer| layer.name == proof.name) {
        layer.detail = format!("{}; {}", layer.detail, proof.detail);
        if !proof.applied {
            layer.applied = false;
            layer.fix.clone_from(&proof.fix);
        }
    }
    proof.applied
}

pub(crate) fn mode(mode: SandboxMode) -> pydeno_sandbox::Mode {
    match mode {
        SandboxMode::Require => pydeno_sandbox::Mode::Require,
        SandboxMode::Auto => pydeno_sandbox::Mode::Auto,
        SandboxMode::Off => pydeno_sandbox::Mode::Off,
    }
}
