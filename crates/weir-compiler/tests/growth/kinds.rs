//! Programs that have very many of one thing.

use crate::common::V1Model;

/// One kind of program: its name, and the text that has `n` of the thing.
pub type Kind = (&'static str, fn(usize) -> String);

/// All kinds that are accepted.
pub const ACCEPTED: &[Kind] = &[
    ("tables", |n| {
        let table = |i| format!("table t{i} {{ key = {{ hdr.h.x: exact; }} actions = {{ set; NoAction; }} }}\n");
        let locals = format!("action set(bit<32> v) {{ hdr.h.y = v; }}\n{}", many(n, table));
        ingress("", &locals, &many(n, |i| format!("t{i}.apply();\n")))
    }),
    ("table-keys", |n| {
        let keys = many(n, |i| format!("hdr.h.x + {i}: exact @name(\"k{i}\");\n"));
        ingress(
            "",
            &format!("table t {{ key = {{ {keys} }} actions = {{ NoAction; }} }}"),
            "t.apply();",
        )
    }),
    ("select-cases", |n| {
        select("hdr.h.x", &many(n, |i| format!("{i}: accept;\n")))
    }),
    ("select-cases-of-masks", |n| {
        select(
            "hdr.h.x, hdr.h.y",
            &many(n, |i| format!("({i} &&& 0xffff, {i}): accept;\n")),
        )
    }),
    ("switch-actions", |n| {
        let cases = many(n, |i| format!("a{i}: {{ hdr.h.y = {i}; }}\n"));
        ingress(
            "",
            &table_of_actions(n),
            &format!("switch (t.apply().action_run) {{ {cases} }}"),
        )
    }),
    ("switch-values", |n| {
        let cases = many(n, |i| format!("{i}: {{ hdr.h.y = {i}; }}\n"));
        ingress("", "", &format!("switch (hdr.h.x) {{ {cases} }}"))
    }),
    ("switch-labels", |n| {
        let labels = many(n, |i| format!("{i}:\n"));
        ingress(
            "",
            "",
            &format!("switch (hdr.h.x) {{ {labels} default: {{ hdr.h.y = 1; }} }}"),
        )
    }),
    ("states", |n| {
        let states = many(n, |i| format!("state s{i} {{ transition s{}; }}\n", i + 1));
        parser("", "s0", &format!("{states} state s{n} {{ transition accept; }}"))
    }),
    ("states-that-extract", |n| {
        let fields = many(n, |i| format!("h_t h{i};\n"));
        let states = many(n, |i| {
            let next = i + 1;
            format!(
                "state s{i} {{ b.extract(hdr.h{i}); transition select(hdr.h{i}.x) {{ {i}: s{next}; default: accept; }} }}\n"
            )
        });
        parser(&fields, "s0", &format!("{states} state s{n} {{ transition accept; }}"))
    }),
    ("extracts", |n| {
        let fields = many(n, |i| format!("h_t h{i};\n"));
        let extracts = many(n, |i| format!("b.extract(hdr.h{i});\n"));
        parser(&fields, "s", &format!("state s {{ {extracts} transition accept; }}"))
    }),
    ("errors", |n| {
        let members = list(n, |i| format!("e{i}"));
        ingress(&format!("error {{ {members} }}"), "", "")
    }),
    ("error-declarations", |n| {
        ingress(&many(n, |i| format!("error {{ e{i} }}\n")), "", "")
    }),
    ("enum-members", |n| {
        let members = list(n, |i| format!("m{i}"));
        let uses = many(n, |i| format!("v = e_t.m{i};\n"));
        ingress(&format!("enum e_t {{ {members} }}"), "e_t v;", &uses)
    }),
    ("serializable-enum-members", |n| {
        let members = list(n, |i| format!("m{i} = {i}"));
        ingress(&format!("enum bit<32> e_t {{ {members} }}"), "", "")
    }),
    ("annotation-keys", |n| {
        let keys = list(n, |i| format!("k{i} = {i}"));
        ingress(
            "",
            &format!("@mine[{keys}] table t {{ actions = {{ NoAction; }} }}"),
            "t.apply();",
        )
    }),
    ("annotation-entries", |n| {
        let entries = list(n, |i| i.to_string());
        ingress(
            "",
            &format!("@mine[{entries}] table t {{ actions = {{ NoAction; }} }}"),
            "t.apply();",
        )
    }),
    ("annotations", |n| {
        let all = many(n, |i| format!("@a{i}(\"text {i}\") "));
        ingress(
            "",
            &format!("{all} table t {{ actions = {{ NoAction; }} }}"),
            "t.apply();",
        )
    }),
    ("named-things", |n| {
        let actions = many(n, |i| {
            format!("@name(\"name{i}\") action a{i}() {{ hdr.h.x = {i}; }}\n")
        });
        let names = many(n, |i| format!("a{i}; "));
        ingress(
            "",
            &format!("{actions} table t {{ actions = {{ {names} }} }}"),
            "t.apply();",
        )
    }),
    ("actions", |n| ingress("", &table_of_actions(n), "t.apply();")),
    ("action-parameters", |n| {
        let parameters = list(n, |i| format!("bit<8> p{i}"));
        let action = format!("action a({parameters}) {{ hdr.h.x = (bit<32>)p0; }}");
        ingress("", &format!("{action} table t {{ actions = {{ a; }} }}"), "t.apply();")
    }),
    ("header-fields", |n| {
        let fields = many(n, |i| format!("bit<8> f{i};\n"));
        let uses = many(n, |i| format!("hdr.w.f{i} = {};\n", i % 256));
        body(
            &format!("header w_t {{ {fields} }}"),
            "w_t w;",
            "b.extract(hdr.w);",
            "",
            &uses,
            "b.emit(hdr.w);",
        )
    }),
    ("headers", |n| {
        let fields = many(n, |i| format!("h_t h{i};\n"));
        body("", &fields, "", "", "hdr.h0.setValid();", "b.emit(hdr);")
    }),
    ("header-types", |n| {
        let types = many(n, |i| format!("header h{i}_t {{ bit<32> f; }}\n"));
        let fields = many(n, |i| format!("h{i}_t h{i};\n"));
        body(&types, &fields, "", "", "", "b.emit(hdr);")
    }),
    ("headers-made-valid", |n| {
        let fields = many(n, |i| format!("h_t h{i};\n"));
        let uses = many(n, |i| format!("if (hdr.h{i}.isValid()) {{ hdr.h{i}.x = 1; }}\n"));
        body("", &fields, "", "", &uses, "b.emit(hdr);")
    }),
    ("struct-fields", |n| {
        let fields = many(n, |i| format!("bit<8> f{i};\n"));
        let uses = many(n, |i| format!("v.f{i} = 1;\n"));
        ingress(&format!("struct w_t {{ {fields} }}"), "w_t v;", &uses)
    }),
    ("struct-values", |n| {
        let fields = many(n, |i| format!("bit<8> f{i};\n"));
        let values = list(n, |i| format!("f{i} = {}", i % 256));
        ingress(
            &format!("struct w_t {{ {fields} }}"),
            "w_t v;",
            &format!("v = {{ {values} }};"),
        )
    }),
    ("constants", |n| {
        let constants = many(n, |i| format!("const bit<32> c{} = c{i} + 1;\n", i + 1));
        ingress(
            &format!("const bit<32> c0 = 0;\n{constants}"),
            "",
            &format!("hdr.h.x = c{n};"),
        )
    }),
    ("typedefs", |n| {
        ingress(
            &many(n, |i| format!("typedef bit<32> t{i};\n")),
            &many(n, |i| format!("t{i} v{i};\n")),
            "",
        )
    }),
    ("constant-structs", |n| {
        let fields = many(n, |i| format!("bit<8> f{i};\n"));
        let values = list(n, |i| format!("f{i} = {}", i % 256));
        let declarations = format!("struct w_t {{ {fields} }} const w_t c = {{ {values} }};\n");
        ingress(&declarations, "", &many(n, |i| format!("hdr.h.x = (bit<32>)c.f{i};\n")))
    }),
    ("constant-lists", |n| {
        let types = list(n, |_| "bit<32>".into());
        let declarations = format!("const tuple<{types}> c = {{ {} }};\n", list(n, |i| i.to_string()));
        ingress(&declarations, "", &many(n, |i| format!("hdr.h.x = c[{i}];\n")))
    }),
    ("serializable-enum-uses", |n| {
        let members = list(n, |i| format!("m{i} = {i}"));
        let uses = many(n, |i| format!("hdr.h.x = (bit<32>)e_t.m{i};\n"));
        ingress(&format!("enum bit<32> e_t {{ {members} }}"), "", &uses)
    }),
    ("error-uses", |n| {
        let members = list(n, |i| format!("e{i}"));
        let uses = many(n, |i| {
            format!("if (sm.parser_error == error.e{i}) {{ hdr.h.x = {i}; }}\n")
        });
        ingress(&format!("error {{ {members} }}"), "", &uses)
    }),
    ("tables-with-own-actions", |n| {
        let table = |i| {
            format!("action a{i}(bit<32> v) {{ hdr.h.y = v; }}\naction b{i}() {{ mark_to_drop(sm); }}\n")
                + &format!("table t{i} {{ key = {{ hdr.h.x: exact; hdr.h.y: ternary; }} ")
                + &format!("actions = {{ a{i}; b{i}; NoAction; }} default_action = b{i}(); size = 64; }}\n")
        };
        ingress("", &many(n, table), &many(n, |i| format!("t{i}.apply();\n")))
    }),
    ("header-stack", |n| {
        let size = n.min(4096);
        let uses = many(size, |i| format!("hdr.s[{i}].x = 1;\n"));
        body("", &format!("h_t[{size}] s;"), "", "", &uses, "b.emit(hdr.s);")
    }),
    ("default-arguments", |n| {
        let functions = many(n, |i| {
            format!("bit<32> f{i}(in bit<32> x, in bit<32> y = {i}) {{ return x + y; }}\n")
        });
        ingress(&functions, "", &many(n, |i| format!("hdr.h.x = f{i}(hdr.h.x);\n")))
    }),
    ("functions", |n| {
        let functions = many(n, |i| format!("bit<32> f{i}(in bit<32> x) {{ return x + {i}; }}\n"));
        ingress(&functions, "", &many(n, |i| format!("hdr.h.x = f{i}(hdr.h.x);\n")))
    }),
    ("calls-of-an-action", |n| {
        let action = "action a(in bit<32> v) { if (v == 7) { return; } hdr.h.y = v; }";
        ingress("", action, &many(n, |i| format!("a({i});\n")))
    }),
    ("controls", |n| {
        let control = "control sub_t(inout bit<32> x) { apply { x = x + 1; } }";
        let instances = many(n, |i| format!("sub_t() c{i};\n"));
        ingress(control, &instances, &many(n, |i| format!("c{i}.apply(hdr.h.x);\n")))
    }),
    ("control-types", |n| {
        let types = many(n, |i| {
            format!("control c{i}_t(inout bit<32> x) {{ apply {{ x = x + {i}; }} }}\n")
        });
        ingress(&types, "", &many(n, |i| format!("c{i}_t.apply(hdr.h.x);\n")))
    }),
    ("const-entries-exact", |n| {
        entries("exact", &many(n, |i| format!("{i}: set({i});\n")))
    }),
    ("const-entries-ternary", |n| {
        entries("ternary", &many(n, |i| format!("{i} &&& 0xffff: set({i});\n")))
    }),
    ("const-entries-lpm", |n| {
        entries("lpm", &many(n, |i| format!("{} &&& 0xffffff00: set({i});\n", i << 8)))
    }),
    ("const-entries-range", |n| {
        entries("range", &many(n, |i| format!("{i}..{}: set({i});\n", i + 5)))
    }),
    ("ifs", |n| {
        ingress(
            "",
            "",
            &many(n, |i| format!("if (hdr.h.x == {i}) {{ hdr.h.y = {i}; }}\n")),
        )
    }),
    ("ifs-that-return", |n| {
        ingress(
            "",
            "",
            &many(n, |i| format!("if (hdr.h.x == {i}) {{ hdr.h.y = {i}; return; }}\n")),
        )
    }),
    ("ifs-that-exit", |n| {
        ingress(
            "",
            "",
            &many(n, |i| format!("if (hdr.h.x == {i}) {{ hdr.h.y = {i}; exit; }}\n")),
        )
    }),
    ("ifs-and-elses", |n| {
        let both = |i| format!("if (hdr.h.x == {i}) {{ hdr.h.y = {i}; }} else {{ v = v + 1; }}\n");
        ingress("", "bit<32> v = 0;", &format!("{} hdr.h.x = v;", many(n, both)))
    }),
    ("conditional-expressions", |n| {
        ingress(
            "",
            "",
            &many(n, |i| {
                format!("hdr.h.y = hdr.h.x == {i} && hdr.h.y != 3 ? 1 : hdr.h.y;\n")
            }),
        )
    }),
    ("assignments", |n| {
        ingress("", "", &many(n, |i| format!("hdr.h.x = hdr.h.x + {i};\n")))
    }),
    ("assignments-on-one-line", |n| {
        ingress("", "", &many(n, |i| format!("hdr.h.x = hdr.h.x + {i}; ")))
    }),
    ("copies", |n| {
        let variables = many(n, |i| format!("bit<32> v{i} = hdr.h.x;\n"));
        ingress(
            "",
            "",
            &format!("{variables} {}", many(n, |i| format!("hdr.h.y = v{i};\n"))),
        )
    }),
    ("local-variables", |n| {
        let variables = many(n, |i| format!("bit<32> v{} = v{i} + 1;\n", i + 1));
        ingress("", "", &format!("bit<32> v0 = hdr.h.x; {variables} hdr.h.y = v{n};"))
    }),
    ("variables-across-ifs", |n| {
        let variables = many(n, |i| format!("bit<32> v{i} = hdr.h.x + {i};\n"));
        let uses = many(n, |i| format!("if (hdr.h.x == {i}) {{ hdr.h.y = v{i}; }}\n"));
        ingress("", "", &format!("{variables} {uses}"))
    }),
    ("blocks", |n| {
        ingress(
            "",
            "",
            &many(n, |i| format!("{{ bit<32> v = {i}; hdr.h.x = hdr.h.x + v; }}\n")),
        )
    }),
    ("counters", |n| {
        let counters = many(n, |i| format!("counter(8, CounterType.packets) c{i};\n"));
        ingress("", &counters, &many(n, |i| format!("c{i}.count(hdr.h.x);\n")))
    }),
    ("registers", |n| {
        let registers = many(n, |i| format!("register<bit<32>>(8) r{i};\n"));
        ingress(
            "",
            &registers,
            &many(n, |i| format!("r{i}.read(hdr.h.x, 0); r{i}.write(1, hdr.h.x);\n")),
        )
    }),
    ("hashes", |n| {
        let call = |i| format!("hash(hdr.h.x, HashAlgorithm.crc32, 32w0, {{ hdr.h.y, 32w{i} }}, 32w1000);\n");
        ingress("", "", &many(n, call))
    }),
    ("direct-counters", |n| {
        let table = |i| {
            format!("direct_counter(CounterType.packets) d{i};\n")
                + &format!("table t{i} {{ actions = {{ NoAction; }} counters = d{i}; }}\n")
        };
        ingress("", &many(n, table), &many(n, |i| format!("t{i}.apply();\n")))
    }),
    ("profiles", |n| {
        let table = |i| {
            format!("action_profile(64) p{i};\n")
                + &format!(
                    "table t{i} {{ key = {{ hdr.h.x: exact; }} actions = {{ NoAction; }} implementation = p{i}; }}\n"
                )
        };
        ingress("", &many(n, table), &many(n, |i| format!("t{i}.apply();\n")))
    }),
    ("value-sets", |n| {
        let sets = many(n, |i| format!("value_set<bit<32>>(4) s{i};\n"));
        let cases = many(n, |i| format!("s{i}: accept;\n"));
        select("hdr.h.x", &cases).replace("state start", &format!("{sets} state start"))
    }),
    ("extern-functions", |n| {
        ingress(
            &many(n, |i| format!("extern void f(in bit<{}> a{i});\n", i % 64 + 1)),
            "",
            "",
        )
    }),
    ("extern-methods", |n| {
        let methods = many(n, |i| format!("void m{i}(in bit<8> a);\n"));
        ingress(&format!("extern x_t {{ x_t(); {methods} }}"), "", "")
    }),
    ("extern-overloads", |n| {
        let methods = many(n, |i| format!("void m(in bit<8> a{i});\n"));
        ingress(&format!("extern x_t {{ x_t(); {methods} }}"), "", "")
    }),
    ("arguments", |n| {
        let parameters = list(n, |i| format!("in bit<32> p{i}"));
        let arguments = list(n, |i| format!("p{i} = hdr.h.x"));
        let function = format!("bit<32> f({parameters}) {{ return p0; }}");
        ingress(&function, "", &format!("hdr.h.x = f({arguments});"))
    }),
    ("type-parameters", |n| {
        let types = many(n, |i| format!("struct s{i}_t<T> {{ T f; }}\n"));
        ingress(&types, &many(n, |i| format!("s{i}_t<bit<8>> v{i};\n")), "")
    }),
    ("tuples", |n| {
        let types = list(n, |_| "bit<8>".into());
        ingress(
            &format!("typedef tuple<{types}> w_t;"),
            "w_t v;",
            &format!("v = {{ {} }};", list(n, |i| (i % 256).to_string())),
        )
    }),
    ("loops", |n| {
        ingress(
            "",
            "",
            &many(n, |i| {
                format!("for (bit<32> i in 0..{i}) {{ hdr.h.x = hdr.h.x + i; }}\n")
            }),
        )
    }),
    ("macros", |n| {
        let macros = many(n, |i| format!("#define M{i} {i}\n"));
        ingress(&macros, "", &many(n, |i| format!("hdr.h.x = M{i};\n")))
    }),
    ("macro-chain", |n| {
        let macros = many(n, |i| format!("#define M{} M{i}\n", i + 1));
        ingress(&format!("#define M0 1\n{macros}"), "", &format!("hdr.h.x = M{n};"))
    }),
    ("macro-arguments", |n| {
        let parameters = list(n, |i| format!("p{i}")).replace('\n', "");
        let arguments = list(n, |i| i.to_string());
        ingress(
            &format!("#define F({parameters}) p0 + p{}\n", n - 1),
            "",
            &format!("hdr.h.x = F({arguments});"),
        )
    }),
    ("conditionals", |n| {
        ingress(
            &many(n, |i| {
                format!("#ifdef M{i}\nconst int\n#elif 0\n#else\nconst int c{i} = {i};\n#endif\n")
            }),
            "",
            "",
        )
    }),
    ("line-markers", |n| {
        ingress(
            &many(n, |i| format!("# {i} \"file{i}.p4\"\nconst int c{i} = __LINE__;\n")),
            "",
            "",
        )
    }),
    ("strings", |n| {
        ingress(&many(n, |i| format!("const string s{i} = \"text {i}\";\n")), "", "")
    }),
    ("logs", |n| {
        ingress(
            "",
            "",
            &many(n, |i| format!("log_msg(\"text {i} {{}}\", {{ hdr.h.x }});\n")),
        )
    }),
    ("extra-switch-tables", |n| {
        let table = |i| format!("table t{i} {{ key = {{ hdr.h.x: exact; }} actions = {{ set; NoAction; }} }}\n");
        let locals = format!("action set(bit<32> v) {{ hdr.h.y = v; }}\n{}", many(n, table));
        let apply = |i| format!("switch (t{i}.apply().action_run) {{ set: {{ hdr.h.x = {i}; }} NoAction: {{ }} }}\n");
        ingress("", &locals, &many(n, apply))
    }),
    ("hits", |n| {
        let table = |i| format!("table t{i} {{ key = {{ hdr.h.x: exact; }} actions = {{ set; NoAction; }} }}\n");
        let locals = format!("action set(bit<32> v) {{ hdr.h.y = v; }}\n{}", many(n, table));
        ingress(
            "",
            &locals,
            &many(n, |i| format!("if (t{i}.apply().hit) {{ hdr.h.x = {i}; }}\n")),
        )
    }),
];

/// Kinds that are refused, whose mistakes are as many as the thing.
pub const REFUSED: &[Kind] = &[
    ("unknown-names", |n| {
        many(n, |i| format!("const bit<32> name_{i} = nmae_{i};\n"))
    }),
    ("unknown-names-in-a-control", |n| {
        ingress("", "", &many(n, |i| format!("hdr.h.x = v{i};\n")))
    }),
    ("unknown-fields", |n| {
        let fields = many(n, |i| format!("bit<8> field{i};\n"));
        ingress(
            &format!("struct w_t {{ {fields} }}"),
            "w_t v;",
            &many(n, |i| format!("v.feild{i} = 1;\n")),
        )
    }),
    ("duplicates", |n| many(n, |_| "const bit<32> c = 1;\n".into())),
    ("duplicate-errors", |n| {
        format!("error {{ {} }}", list(n, |_| "e".into()))
    }),
    ("wrong-types", |n| {
        ingress("", "", &many(n, |_| "hdr.h.x = true;\n".into()))
    }),
    ("syntax-errors", |n| many(n, |_| "const bit<32> c 1;\n".into())),
    ("characters", |n| "$ ".repeat(n)),
    ("unknown-directives", |n| many(n, |i| format!("#incldue <a{i}.p4>\n"))),
    ("extra-tokens", |n| many(n, |i| format!("#ifdef M{i} more\n#endif\n"))),
    ("else-ifs", |n| {
        let chain = many(n, |i| format!("if (hdr.h.x == {i}) {{ hdr.h.y = {i}; }} else "));
        ingress("", "", &format!("{chain} {{ }}"))
    }),
    ("sums", |n| {
        ingress("", "", &format!("hdr.h.x = hdr.h.x{};", " + hdr.h.y".repeat(n)))
    }),
];

fn many(n: usize, f: impl Fn(usize) -> String) -> String {
    (0..n).map(f).collect()
}

fn list(n: usize, f: impl Fn(usize) -> String) -> String {
    (0..n).map(f).collect::<Vec<_>>().join(",\n")
}

fn table_of_actions(n: usize) -> String {
    let actions = many(n, |i| format!("action a{i}() {{ hdr.h.x = {i}; }}\n"));
    let names = many(n, |i| format!("a{i}; "));
    format!("{actions} table t {{ key = {{ hdr.h.x: exact; }} actions = {{ {names} NoAction; }} }}")
}

fn entries(kind: &str, entries: &str) -> String {
    let action = "action set(bit<32> v) { hdr.h.y = v; }";
    let table = format!(
        "table t {{ key = {{ hdr.h.x: {kind}; }} actions = {{ set; NoAction; }} const entries = {{ {entries} }} }}"
    );
    ingress("", &format!("{action} {table}"), "t.apply();")
}

fn select(keys: &str, cases: &str) -> String {
    parser(
        "",
        "s",
        &format!("state s {{ transition select({keys}) {{ {cases} default: reject; }} }}"),
    )
}

fn parser(fields: &str, first: &str, states: &str) -> String {
    v1model("", fields, &format!("transition {first}; }} {states}"), "", "", "")
}

fn ingress(declarations: &str, locals: &str, apply: &str) -> String {
    body(declarations, "", "", locals, apply, "")
}

fn body(declarations: &str, fields: &str, extract: &str, locals: &str, apply: &str, emit: &str) -> String {
    v1model(
        declarations,
        fields,
        &format!("{extract} transition accept; }}"),
        locals,
        apply,
        emit,
    )
}

fn v1model(declarations: &str, fields: &str, states: &str, locals: &str, apply: &str, emit: &str) -> String {
    let emit = &format!("b.emit(hdr.h); {emit}");
    let program = V1Model {
        declarations,
        fields,
        states,
        locals,
        apply,
        emit,
    };
    program.text()
}
