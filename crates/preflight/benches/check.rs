//! How fast a check reads: `cargo bench -p pydeno-preflight [-- FILE...]`. Without files it reads a script that it
//! repeats to a megabyte; give it minified libraries for figures that mean something.

use std::hint::black_box;
use std::time::{Duration, Instant};

use pydeno_preflight::{Options, check};

const SCRIPT: &str = r#"function total(orders){return orders.filter(o=>o.state!=="void").map(({price:p,count:c=1})=>p*c/100)
.reduce((a,b)=>a+b,0)}const label=n=>n===1?`${n} item`:`${n} items`;for(const o of orders){if(/^[a-z/]+$/u.test(o.name))
out.push({...o,label:label(o.count)})}"#;

fn main() {
    let files: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    measure("a script, repeated", SCRIPT.repeat((1 << 20) / SCRIPT.len()).as_bytes());
    for file in files {
        match std::fs::read(&file) {
            Ok(source) => measure(&file, &source),
            Err(error) => println!("{file}: {error}"),
        }
    }
}

/// Prints the median and the best of many rounds.
fn measure(name: &str, source: &[u8]) {
    let mut rounds = Vec::new();
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(500) || rounds.len() < 5 {
        let round = Instant::now();
        black_box(check(black_box(source), Options::default()));
        rounds.push(round.elapsed());
    }
    rounds.sort();
    let speed = |round: Duration| source.len() as f64 / round.as_secs_f64() / 1e6;
    let (median, best) = (speed(rounds[rounds.len() / 2]), speed(rounds[0]));
    println!("{name:60} {:>9} bytes {median:>6.0} MB/s, {best:.0} at best", source.len());
}
