//! `weir int wireshark`: the dissectors that come with weir, as files.

use super::arguments::Wireshark;
use crate::output::Messages;
use anyhow::{Context, Result};

/// Name and text of each script, in the order in which they have to be loaded.
const SCRIPTS: [(&str, &str); 4] = [
    ("weir_efcp.lua", include_str!("../../../../wireshark/weir_efcp.lua")),
    ("weir_int.lua", include_str!("../../../../wireshark/weir_int.lua")),
    (
        "weir_int_marked.lua",
        include_str!("../../../../wireshark/weir_int_marked.lua"),
    ),
    ("weir_report.lua", include_str!("../../../../wireshark/weir_report.lua")),
];

/// Writes the scripts.
pub fn wireshark(arguments: &Wireshark, messages: &Messages) -> Result<u8> {
    let folder = &arguments.output;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, text) in SCRIPTS {
        let path = folder.join(name);
        weir_files::write(&path, text.as_bytes())?;
        messages.line(format!("written: {}", path.display()));
    }
    Ok(0)
}
