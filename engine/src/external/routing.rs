//! A collection's `meta/runtime.yml`: modules that moved, and modules that are gone.

use std::{collections::HashMap, path::Path};

use fleet_yaml::{Source, load};

/// Where names of a collection lead.
#[derive(Debug, Default)]
pub(super) struct Routing {
    redirects: HashMap<String, String>,
    gone: HashMap<String, String>,
}

impl Routing {
    /// Of the collection in a directory. A file that cannot be read leads nowhere.
    pub(super) fn read(root: &Path) -> Self {
        let mut routing = Self::default();
        let path = root.join("meta/runtime.yml");
        let bytes = crate::sources::read(&path).unwrap_or_default();
        let Ok(source) = Source::from_bytes(&path, bytes) else {
            return routing;
        };
        let Ok(loaded) = load(source) else {
            return routing;
        };
        let document = loaded.documents.first();
        let modules =
            document.and_then(|root| root.get("plugin_routing")?.get("modules")?.as_map());
        for (name, entry) in modules.into_iter().flat_map(|modules| modules.iter()) {
            let name = name.key_text();
            if let Some(target) = entry.get("redirect").and_then(|target| target.as_str()) {
                routing.redirects.insert(name, target.to_owned());
            } else if let Some(tombstone) = entry.get("tombstone") {
                let text = tombstone.get("warning_text").and_then(|text| text.as_str());
                routing.gone.insert(
                    name,
                    text.unwrap_or("nothing takes its place").trim().to_owned(),
                );
            }
        }
        routing
    }

    /// The full name of what took a module's place.
    pub(super) fn redirect(&self, module: &str) -> Option<&str> {
        self.redirects.get(module).map(String::as_str)
    }

    /// Why a module is gone.
    pub(super) fn gone(&self, module: &str) -> Option<&str> {
        self.gone.get(module).map(String::as_str)
    }
}
