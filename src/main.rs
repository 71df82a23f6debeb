//! x
fn main() {
    let folder = std::env::args().nth(1);
    let report = paygo::selftest::run(folder.as_deref().map(std::path::Path::new)).unwrap();
    for f in &report.families {
        println!("{} {}/{} skipped {} worst {:e}", f.family, f.passed, f.total, f.skipped, f.worst_relative_error);
        for x in f.failures.iter().take(6) { println!("    {x}"); }
    }
}
