//! A sandbox's report in the words of the wire.

use pydeno_sandbox::layer::SELF_TEST;
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
/// A worker cannot try the forbidden call itself: where the filter works, that is its end. So a proof that failed is also
/// an attempt of the self-test that worked.
pub(crate) fn include(report: &mut Report, proof: &Layer) -> bool {
    for layer in &mut report.layers {
        let concerned = layer.name == proof.name || (layer.name == SELF_TEST && !proof.applied);
        if concerned {
            layer.detail = format!("{}; {}", layer.detail, proof.detail);
        }
        if concerned && !proof.applied {
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
