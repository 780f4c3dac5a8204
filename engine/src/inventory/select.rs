//! The hosts that a pattern means.

use fleet_yaml::{Diagnostic, nearest};
use indexmap::IndexSet;
use regex::Regex;

use super::{
    ALL, Inventory,
    mistake::{code, meant, placeless},
    pattern::{Effect, Limit, Names, Pattern, Term},
};

/// What a pattern selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The hosts by name, each once: in the order of the pattern's parts, within them in inventory
    /// order.
    pub hosts: Vec<String>,
    /// Parts of the pattern that match neither a group nor a host.
    pub unmatched: Vec<String>,
}

impl Inventory {
    /// The hosts that a pattern means, narrowed to a limit.
    ///
    /// # Errors
    ///
    /// A pattern that cannot be read, and a part of the limit that matches nothing.
    pub fn select(&self, pattern: &str, limit: Option<&Limit>) -> Result<Selection, Diagnostic> {
        self.select_pattern(&Pattern::parse(pattern)?, limit)
    }

    /// As [`Inventory::select`], of a pattern that has been read.
    ///
    /// # Errors
    ///
    /// A part of the limit that matches nothing.
    pub fn select_pattern(
        &self,
        pattern: &Pattern,
        limit: Option<&Limit>,
    ) -> Result<Selection, Diagnostic> {
        let (mut hosts, unmatched) = self.evaluate(pattern);
        if let Some(limit) = limit {
            let (within, unmatched) = self.evaluate(&limit.0);
            let serious = |term: &&Term| {
                term.effect != Effect::Exclude || matches!(term.names, Names::One(_))
            };
            if let Some(term) = unmatched.into_iter().find(serious) {
                return Err(self.beyond(term));
            }
            hosts.retain(|host| within.contains(host));
        }
        Ok(Selection {
            hosts: hosts.into_iter().map(str::to_owned).collect(),
            unmatched: unmatched
                .into_iter()
                .map(|term| term.text.clone())
                .collect(),
        })
    }

    /// The hosts that a limit leaves of all; parts that match nothing are passed over.
    pub fn within(&self, limit: &Limit) -> Vec<String> {
        let (hosts, _) = self.evaluate(&limit.0);
        hosts.into_iter().map(str::to_owned).collect()
    }

    /// The name of a group or host nearest to one that matches nothing.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest(name, self.names())
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.groups()
            .map(|group| group.name.as_str())
            .chain(self.hosts().map(|host| host.name.as_str()))
    }

    /// A part of the limit matches nothing.
    fn beyond(&self, term: &Term) -> Diagnostic {
        let mistake = placeless(
            code::PATTERN,
            format!("`{}` in the limit matches no host and no group", term.text),
        );
        let mistake = match &term.span {
            Some(span) => mistake.at(span.clone()),
            None => mistake,
        };
        meant(mistake, &term.text, self.names())
    }

    fn evaluate<'a, 'p>(&'a self, pattern: &'p Pattern) -> (IndexSet<&'a str>, Vec<&'p Term>) {
        let mut unmatched = Vec::new();
        let mut hosts: IndexSet<&str> = IndexSet::new();
        // A pattern that adds nothing narrows `all`.
        if pattern
            .terms
            .first()
            .is_none_or(|term| term.effect != Effect::Add)
        {
            hosts.extend(self.hosts().map(|host| host.name.as_str()));
        }
        for term in &pattern.terms {
            let Some(meant) = self.matches(term) else {
                unmatched.push(term);
                if term.effect == Effect::Intersect {
                    hosts.clear();
                }
                continue;
            };
            match term.effect {
                Effect::Add => hosts.extend(meant),
                Effect::Intersect => hosts.retain(|host| meant.contains(host)),
                Effect::Exclude => hosts.retain(|host| !meant.contains(host)),
            }
        }
        (hosts, unmatched)
    }

    /// The hosts of one term, or none if neither a group nor a host has such a name.
    fn matches(&self, term: &Term) -> Option<IndexSet<&str>> {
        if let Some((name, _)) = self.graph.hosts.get_key_value(&term.text) {
            return Some(IndexSet::from([name.as_str()]));
        }
        let found = match &term.names {
            Names::One(name) => self.group_members(name).or_else(|| {
                let host = self.host(name)?;
                Some(IndexSet::from([host.name.as_str()]))
            }),
            Names::Glob(_) if term.text == "*" => self.group_members(ALL),
            Names::Glob(regex) | Names::Regex(regex) => self.like(regex),
        }?;
        Some(match term.slice {
            Some(slice) => found[slice.range(found.len())].iter().copied().collect(),
            None => found,
        })
    }

    fn group_members(&self, name: &str) -> Option<IndexSet<&str>> {
        let group = self.graph.groups.get_index_of(name)?;
        Some(
            self.graph
                .members(group)
                .iter()
                .map(|host| self.graph.hosts[*host].name.as_str())
                .collect(),
        )
    }

    /// The hosts of all groups whose name matches, then the hosts whose own name does.
    fn like(&self, regex: &Regex) -> Option<IndexSet<&str>> {
        let mut groups = self
            .groups()
            .filter(|group| regex.is_match(&group.name))
            .peekable();
        let mut hosts: IndexSet<&str> = IndexSet::new();
        let mut any = groups.peek().is_some();
        for group in groups {
            hosts.extend(self.group_members(&group.name).unwrap_or_default());
        }
        for host in self.graph.hosts.keys().filter(|host| regex.is_match(host)) {
            hosts.insert(host);
            any = true;
        }
        any.then_some(hosts)
    }
}

#[cfg(test)]
mod tests {
    use fleet_yaml::render;

    use super::super::lab::{Lab, load};
    use super::*;

    const TEXT: &str =
        "[zz]\nh3\nh1\n[empty]\n[aa:children]\nzz\nbb\n[bb]\nh2\nh1\n[cc:children]\naa\n[cc]\nh0\n";

    fn selected(pattern: &str) -> Vec<String> {
        load("i.ini", TEXT).select(pattern, None).unwrap().hosts
    }

    fn unmatched(pattern: &str) -> Vec<String> {
        load("i.ini", TEXT).select(pattern, None).unwrap().unmatched
    }

    #[test]
    fn groups_hosts_and_all() {
        for (pattern, hosts) in [
            ("all", "h0 h3 h1 h2"),
            ("*", "h0 h3 h1 h2"),
            ("cc", "h0 h3 h1 h2"),
            ("aa", "h3 h1 h2"),
            ("h1", "h1"),
            ("empty", ""),
            ("ungrouped", ""),
        ] {
            assert_eq!(selected(pattern).join(" "), hosts, "{pattern}");
        }
    }

    #[test]
    fn parts_add_up_in_their_order() {
        for (pattern, hosts) in [
            ("zz,bb", "h3 h1 h2"),
            ("bb:zz", "h2 h1 h3"),
            ("h1,h1", "h1"),
            ("h1, ,  ,h3", "h1 h3"),
            (",,", "h0 h3 h1 h2"),
            ("", "h0 h3 h1 h2"),
            (",,h1", "h1"),
        ] {
            assert_eq!(selected(pattern).join(" "), hosts, "{pattern}");
        }
    }

    #[test]
    fn intersections_and_exclusions_come_last_wherever_they_stand() {
        for (pattern, hosts) in [
            ("zz:&bb", "h1"),
            ("&bb:zz", "h1"),
            ("zz:!bb", "h3"),
            ("!bb:zz", "h3"),
            ("cc:&aa:!zz", "h2"),
            ("!zz", "h0 h2"),
            ("&zz", "h3 h1"),
            ("!h1:&all", "h0 h3 h2"),
            ("!all", ""),
            ("h1:!h1", ""),
        ] {
            assert_eq!(selected(pattern).join(" "), hosts, "{pattern}");
        }
    }

    #[test]
    fn globs_and_regular_expressions() {
        for (pattern, hosts) in [
            ("h*", "h3 h1 h2 h0"),
            ("*z", "h3 h1"),
            ("[hz]*", "h3 h1 h2 h0"),
            ("h[!0-2]", "h3"),
            ("~h[12]", "h1 h2"),
            ("~b", "h2 h1"),
            ("~(h1|h2)$", "h1 h2"),
            ("~.*0", "h0"),
        ] {
            assert_eq!(selected(pattern).join(" "), hosts, "{pattern}");
        }
    }

    #[test]
    fn subscripts_include_both_ends() {
        for (pattern, hosts) in [
            ("aa[0]", "h3"),
            ("aa[-1]", "h2"),
            ("aa[0:1]", "h3 h1"),
            ("aa[1:]", "h1 h2"),
            ("aa[:1]", "h3 h1"),
            ("aa[-2:]", "h1 h2"),
            ("aa[0:-2]", "h3 h1"),
            ("aa[9]", ""),
            ("aa[-9]", ""),
            ("aa[1:99]", "h1 h2"),
            ("h*[0]", "h3"),
            ("zz[0],bb[-1]", "h3 h1"),
        ] {
            assert_eq!(selected(pattern).join(" "), hosts, "{pattern}");
            assert_eq!(unmatched(pattern), [""; 0], "{pattern}");
        }
    }

    #[test]
    fn what_matches_nothing_is_told() {
        assert_eq!(unmatched("nope,h1"), ["nope"]);
        assert_eq!(unmatched("h?,!nope"), ["nope"]);
        assert_eq!(unmatched("zz:&nope"), ["nope"]);
        assert_eq!(selected("zz:&nope"), [""; 0]);
        assert_eq!(unmatched("H1"), ["H1"]);
        assert_eq!(unmatched("x*"), ["x*"]);
        assert_eq!(unmatched("h1:22"), ["h1:22"]);
    }

    #[test]
    fn localhost_is_matched_by_name_only() {
        assert_eq!(selected("localhost"), ["localhost"]);
        assert_eq!(selected("::1"), ["::1"]);
        assert_eq!(unmatched("local*"), ["local*"]);
    }

    #[test]
    fn a_host_is_meant_before_a_group_of_its_name() {
        let inventory = load("i.ini", "[web]\nweb\nw1\n");
        assert_eq!(inventory.select("web", None).unwrap().hosts, ["web"]);
        assert_eq!(inventory.select("web*", None).unwrap().hosts, ["web", "w1"]);
    }

    #[test]
    fn addresses_and_names_with_dots_are_names() {
        let inventory = load("i.ini", "[web]\n2001:db8::1\na.ex\n10.0.0.1\n");
        for name in ["2001:db8::1", "a.ex", "10.0.0.1"] {
            assert_eq!(inventory.select(name, None).unwrap().hosts, [name]);
        }
    }

    #[test]
    fn patterns_that_are_none_are_told() {
        let wrong = |pattern| {
            render(
                &load("i.ini", TEXT).select(pattern, None).unwrap_err(),
                false,
            )
        };
        insta::assert_snapshot!(wrong("aa[1"), @"
        error[F0210]: a `[` is never closed in the host pattern `aa[1`
         |
         = help: a subscript is `web[0]`, `web[0:2]`, `web[1:]` or `web[-1]`
        ");
        insta::assert_snapshot!(wrong("~h("), @"error[F0210]: `h(` is no regular expression: unclosed group");
        insta::assert_snapshot!(wrong("h1:!"), @"error[F0210]: nothing stands behind `!` in a host pattern");
    }

    #[test]
    fn a_limit_narrows() {
        let inventory = load("i.ini", TEXT);
        let within = |limit| {
            inventory
                .select("aa", Some(&Limit::parse(limit).unwrap()))
                .unwrap()
                .hosts
                .join(" ")
        };
        assert_eq!(within("h1"), "h1");
        assert_eq!(within("bb"), "h1 h2", "in the order of the pattern");
        assert_eq!(within("!h1"), "h3 h2");
        assert_eq!(within("h0"), "");
        assert_eq!(within(""), "h3 h1 h2");
        assert_eq!(
            within("!old-*"),
            "h3 h1 h2",
            "a glob that excludes nothing is no mistake"
        );
    }

    #[test]
    fn a_limit_reads_files() {
        let lab = Lab::new(&[
            ("i.ini", TEXT),
            ("only", "h1\n\n# not h2\n  zz[0]  \n"),
            ("wrong", "h1\nh33x\n"),
        ]);
        let inventory = lab.load(&["i.ini"]);
        let limit = Limit::parse(&format!("@{}", lab.path("only").display())).unwrap();
        assert_eq!(
            inventory.select("all", Some(&limit)).unwrap().hosts,
            ["h3", "h1"]
        );
        let limit = Limit::parse(&format!("@{}", lab.path("wrong").display())).unwrap();
        insta::assert_snapshot!(lab.shown(&[inventory.select("all", Some(&limit)).unwrap_err()]), @"
        error[F0210]: `h33x` in the limit matches no host and no group
         --> wrong:2:1
          |
        2 | h33x
          | ^^^^
        ");
        insta::assert_snapshot!(render(&Limit::parse("h1,@/no/such/file").unwrap_err(), false), @"
        error[F0210]: Unable to find limit file `/no/such/file`
         --> --limit:1:4
          |
        1 | h1,@/no/such/file
          |    ^^^^^^^^^^^^^^
        ");
    }

    #[test]
    fn a_limit_that_matches_nothing_is_an_error_with_the_nearest_name() {
        let inventory = load("i.ini", "[webservers]\nw1\n");
        let wrong = |limit| {
            render(
                &inventory
                    .select("all", Some(&Limit::parse(limit).unwrap()))
                    .unwrap_err(),
                false,
            )
        };
        insta::assert_snapshot!(wrong("w1,webserver"), @"
        error[F0210]: `webserver` in the limit matches no host and no group
         --> --limit:1:4
          |
        1 | w1,webserver
          |    ^^^^^^^^^
          |
          = help: did you mean `webservers`?
        ");
        insta::assert_snapshot!(wrong("!wbeservers"), @"
        error[F0210]: `wbeservers` in the limit matches no host and no group
         --> --limit:1:1
          |
        1 | !wbeservers
          | ^^^^^^^^^^^
          |
          = help: did you mean `webservers`?
        ");
    }
}
