use serde_json::{Value, json};

use super::{source::Source, tuning::Limits};

/// nginx on this host: its version, how it was built and as whom it runs. Only where it is installed is it started, once, to say so.
pub(super) fn describe(source: &Source<'_>) -> Value {
    let Some(path) = [
        "/usr/sbin/nginx",
        "/usr/local/nginx/sbin/nginx",
        "/usr/local/sbin/nginx",
    ]
    .into_iter()
    .find(|path| source.exists(path)) else {
        return json!({"present": false});
    };
    let said = source.probe(&[path, "-V"]).unwrap_or_default();
    let build = Build::parse(&said.stderr);
    let config = build
        .option("--conf-path")
        .unwrap_or("/etc/nginx/nginx.conf");
    let main = source.text(config).unwrap_or_default();
    let user = user(&main)
        .or_else(|| build.option("--user"))
        .unwrap_or("nobody");
    let pid = build.option("--pid-path").unwrap_or("/run/nginx.pid");
    let modules = build
        .option("--modules-path")
        .unwrap_or("/usr/lib/nginx/modules");
    json!({
        "present": true,
        "path": path,
        "version": build.version,
        "tls": build.tls,
        "configure_arguments": build.arguments,
        "modules": build.modules(&source.names(modules)),
        "config": config,
        "pid_file": pid,
        "user": user,
        "cpu_quota": Limits::read(source, "/system.slice/nginx.service").cpu_quota,
    })
}

#[derive(Debug, Default, PartialEq)]
struct Build {
    version: String,
    tls: String,
    arguments: Vec<String>,
}

impl Build {
    fn parse(text: &str) -> Self {
        let after = |key: &str| {
            let line = text.lines().find_map(|line| line.split_once(key));
            line.map_or("", |(_, rest)| rest.trim())
        };
        let version = after("nginx version:");
        let version = version.split_once('/').map_or(version, |(_, rest)| rest);
        Self {
            version: version.split(' ').next().unwrap_or_default().to_owned(),
            tls: after("built with ").to_owned(),
            arguments: words(after("configure arguments:")),
        }
    }

    fn option(&self, name: &str) -> Option<&str> {
        self.arguments
            .iter()
            .find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='))
    }

    /// Names as in the configure arguments, `http_v2` for `--with-http_v2_module`, and those of the files
    /// of loadable modules, `ngx_http_geoip2`.
    fn modules(&self, files: &[String]) -> Vec<String> {
        let built = self.arguments.iter().filter_map(|argument| {
            let name = argument.strip_prefix("--with-")?;
            name.split('=').next()?.strip_suffix("_module")
        });
        let loadable = files
            .iter()
            .filter_map(|name| name.strip_suffix(".so"))
            .map(|name| name.strip_suffix("_module").unwrap_or(name));
        let mut modules: Vec<String> = built.chain(loadable).map(str::to_owned).collect();
        modules.sort();
        modules.dedup();
        modules
    }
}

/// Arguments are quoted in part: `--with-cc-opt='-O2 -g'`.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            _ => word.push(letter),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The first word of the main file's `user` directive.
fn user(config: &str) -> Option<&str> {
    let line = config
        .lines()
        .map(str::trim_start)
        .find_map(|line| line.strip_prefix("user"))?;
    if !line.starts_with(char::is_whitespace) {
        return None;
    }
    line.split(';').next()?.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::{Build, user};

    const DEBIAN: &str = "nginx version: nginx/1.22.1\nbuilt with OpenSSL 3.0.15 3 Sep 2024\nTLS SNI support enabled\nconfigure arguments: --with-cc-opt='-g -O2 -fPIC' --conf-path=/etc/nginx/nginx.conf --with-http_v2_module --with-threads --with-http_geoip_module=dynamic\n";

    #[test]
    fn the_build_is_read_from_what_nginx_says() {
        let build = Build::parse(DEBIAN);
        assert_eq!(
            (build.version.as_str(), build.tls.as_str()),
            ("1.22.1", "OpenSSL 3.0.15 3 Sep 2024")
        );
        assert_eq!(build.arguments[0], "--with-cc-opt=-g -O2 -fPIC");
        assert_eq!(build.option("--conf-path"), Some("/etc/nginx/nginx.conf"));
        assert_eq!(
            build.modules(&["ngx_http_geoip2_module.so".to_owned()]),
            ["http_geoip", "http_v2", "ngx_http_geoip2"]
        );
        let ubuntu = "nginx version: nginx/1.24.0 (Ubuntu)\nconfigure arguments: --user=www\n";
        assert_eq!(Build::parse(ubuntu).version, "1.24.0");
        assert_eq!(Build::parse(""), Build::default());
    }

    #[test]
    fn the_user_is_that_of_the_main_file() {
        assert_eq!(user("# user x;\nuser  www-data www;\n"), Some("www-data"));
        assert_eq!(user("userid on;\n"), None);
    }
}
