//! Models that come with weir.

use super::Model;

/// Names and texts, the default of each target first.
const SHIPPED: &[(&str, &str)] = &[
    ("cycles", include_str!("../../models/cycles.json")),
    ("paper-lr", include_str!("../../models/paper-lr.json")),
    ("paper-lr-lc", include_str!("../../models/paper-lr-lc.json")),
    ("cycles-tofino2", include_str!("../../models/cycles-tofino2.json")),
    ("weir-plp", include_str!("../../models/weir-plp.json")),
    ("weir-lr", include_str!("../../models/weir-lr.json")),
];

/// The model of this name that ships with weir.
#[must_use]
pub fn shipped(name: &str) -> Option<Model> {
    let (_, text) = SHIPPED.iter().find(|(known, _)| *known == name)?;
    Model::parse(text).ok()
}

/// Names of the models that ship.
#[must_use]
pub fn shipped_names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_model_can_be_read_and_is_called_by_its_name() {
        for (name, text) in SHIPPED {
            assert_eq!(Model::parse(text).unwrap().name, *name);
        }
    }
}
