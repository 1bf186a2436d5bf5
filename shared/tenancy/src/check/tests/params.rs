//! What a tenant's file may say about parameters, and exactly how each mistake is told.

use super::{KNOWN, codes, told};
use crate::check::parse;
use insta::assert_snapshot;

#[test]
fn a_tenants_parameter_says_where_its_value_comes_from() {
    let text = "tenant: acme\nparams:\n  \
         plain: { default: x }\n  \
         none: { description: 'nothing' }\n  \
         both: { secret: true, default: hunter2 }\n  \
         open: { from: some.secret }\n  \
         path: { secret: true, from: ../x }\n  \
         unsaid: { secret: false }\n  \
         '0': { default: x }\n  \
         nested: { default: '{{ params.plain }}' }\n  \
         long: { default: \"a\\nb\" }\n";
    assert_snapshot!(told(text), @"
    acme.yaml:4:9: missing_param: nobody gives the parameter `none` a value
        hint: add `default:`, or `secret: true` if it stands for a secret of the tenant
    acme.yaml:5:34: secret_literal: the secret parameter `both` stands here in plain text
        hint: leave `default` out; the value is the tenant's secret of that name, or of the name in `from`
    acme.yaml:6:17: secret_leak: the secret `open` would be read into a parameter that is not marked as one
        hint: add `secret: true`
    acme.yaml:7:31: bad_value: `../x` is no name of a secret
    acme.yaml:8:21: bad_value: `secret` can only be `true`
        hint: leave the key out instead
    acme.yaml:9:3: bad_value: `0` is no name of a parameter
        hint: use 1 to 64 letters, digits, `_` and `-`, beginning with a letter
    acme.yaml:10:22: bad_value: `default` refers to something, and only plain text is understood here
    acme.yaml:11:20: bad_value: `default` holds a control character
    ");
}

#[test]
fn what_stands_in_an_environment_is_refused_wherever_it_stands() {
    let text = "tenant: acme\n\
         params:\n  a: { default: 'env:HOME', description: 'instead of env:HOME' }\n  b: { secret: true, from: 'env:B' }\n\
         default_toolsets: ['pre env:C']\n\
         policy: { deny: ['env:D'], require_approval: [{ name: 'env:E' }], approval: { expires: 'env:F' } }\n";
    let problems = parse("acme.yaml", text, &KNOWN).unwrap_err();
    let refused: Vec<_> = problems.iter().filter(|problem| problem.code == "env_refused").collect();
    let seen: Vec<u32> = refused.iter().map(|problem| problem.line).collect();
    assert_eq!(seen, [3, 4, 5, 6, 6, 6]);
    assert_snapshot!(refused[0], @"
    acme.yaml:3:17: env_refused: `env:HOME` is refused: what it stands for cannot be seen or checked here
        hint: declare a parameter with `secret: true`, write `{{ params.NAME }}` in its place, and let its value come from the tenant's secrets (a mounted file, the operator's environment, or the API)
    ");
    assert_eq!(problems.len(), refused.len(), "nothing is said twice");
}

#[test]
fn parameters_are_counted() {
    let params = (0..65).map(|n| format!("p{n}: {{ default: x }}")).collect::<Vec<_>>().join(", ");
    assert_eq!(codes(&format!("tenant: acme\nparams: {{ {params} }}")), ["out_of_range"]);
    let long = "x".repeat(1025);
    assert_eq!(codes(&format!("tenant: acme\nparams: {{ a: {{ default: {long} }} }}")), ["bad_value"]);
}
