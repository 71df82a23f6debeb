//! What must not compile: estimates in places that decide, currencies added to each other, permits copied or made.

#[test]
fn wrong_programs_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
