//! Small files from the network, by the programs that the host has: the helper carries no TLS of its own.

use crate::host::{Fault, Host};

/// The content behind a URL, at most 2 MiB. Also in a plan: nothing on the host changes.
pub(super) fn fetch(host: &Host, url: &str, validate_certs: bool) -> Result<Vec<u8>, Fault> {
    if url.starts_with('-')
        || !["http://", "https://", "ftp://", "file:"]
            .iter()
            .any(|start| url.starts_with(start))
    {
        return Err(Fault::new(format!("`{url}` is no URL that can be fetched")));
    }
    const PYTHON: &str = "import ssl,sys,urllib.request as r\n\
        c=None if sys.argv[2]=='1' else ssl._create_unverified_context()\n\
        sys.stdout.buffer.write(r.urlopen(r.Request(sys.argv[1],headers={'User-Agent':'ansible-httpget'}),timeout=60,context=c).read())";
    let flag = if validate_certs { "1" } else { "0" };
    let mut curl = vec![
        "curl",
        "-fsSL",
        "--connect-timeout",
        "20",
        "--max-time",
        "100",
        "-A",
        "ansible-httpget",
    ];
    let mut wget = vec![
        "wget",
        "-q",
        "-O",
        "-",
        "--timeout=20",
        "--tries=2",
        "-U",
        "ansible-httpget",
    ];
    if !validate_certs {
        curl.push("--insecure");
        wget.push("--no-check-certificate");
    }
    curl.extend(["--", url]);
    wget.extend(["--", url]);
    let mut problem = None;
    for argv in [curl, wget, vec!["python3", "-c", PYTHON, url, flag]] {
        // A program that is not there says nothing about the URL.
        let Ok(output) = host.probe(&argv) else {
            continue;
        };
        if output.ok() && !output.cut {
            return Ok(output.stdout);
        }
        let said = if output.cut {
            "it is larger than 2 MiB".to_owned()
        } else {
            output.complaint()
        };
        problem.get_or_insert(said.lines().last().unwrap_or_default().to_owned());
    }
    Err(Fault::new(match problem {
        Some(problem) => format!("cannot fetch {url}: {problem}"),
        None => format!("cannot fetch {url}: this host has none of curl, wget and python3"),
    }))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::fetch;
    use crate::host::Host;

    #[test]
    fn a_url_is_fetched_by_a_program_of_the_host() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/key", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).unwrap();
            stream
                .write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nkey\n")
                .unwrap();
        });
        let fetched = fetch(&Host::plan(), &url, true);
        if let Err(fault) = &fetched
            && fault.message.contains("none of curl")
        {
            return;
        }
        server.join().unwrap();
        assert_eq!(fetched.unwrap(), b"key\n");
        let fault = fetch(&Host::plan(), "http://127.0.0.1:1/", true).unwrap_err();
        assert!(
            fault
                .message
                .starts_with("cannot fetch http://127.0.0.1:1/: "),
            "{fault}"
        );
        assert!(fetch(&Host::plan(), "--help", true).is_err());
    }
}
