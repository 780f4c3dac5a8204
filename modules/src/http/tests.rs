use std::io::Cursor;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use super::*;

/// A server that gives these answers, one a connection, and keeps what it was asked.
fn server(answers: &[&str]) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (kept, answers): (_, Vec<String>) = (
        asked.clone(),
        answers.iter().map(|it| (*it).to_owned()).collect(),
    );
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut stream, _)) = listener.accept() else {
                return;
            };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            stream.read_exact(&mut body).unwrap();
            kept.lock()
                .unwrap()
                .push(head + &String::from_utf8(body).unwrap());
            stream
                .write_all(answer.replace('\n', "\r\n").as_bytes())
                .unwrap();
        }
    });
    (address, asked)
}

fn request(address: &str, path: &str) -> Request {
    Request::get(Url::parse(&format!("{address}{path}")).unwrap())
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.bytes().unwrap()).unwrap()
}

#[test]
fn an_answer_has_a_status_headers_and_a_body() {
    let (address, asked) =
        server(&["HTTP/1.1 404 Not Found\nX-A: b\nContent-Length: 4\n\ncodeAND MORE"]);
    let mut post = request(&address, "/x?y=1");
    post.method = "POST".to_owned();
    post.body = Some(b"hello".to_vec());
    post.headers
        .push(("X-Evil".to_owned(), "a\r\nInjected: b".to_owned()));
    let answer = post.send(&Host::plan()).unwrap();
    assert_eq!(
        (
            answer.status,
            answer.reason.as_str(),
            text(&answer).as_str()
        ),
        (404, "Not Found", "code")
    );
    assert_eq!(answer.header("x-a"), Some("b"));
    let asked = asked.lock().unwrap()[0].clone();
    assert!(
        asked.starts_with("POST /x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:"),
        "{asked}"
    );
    assert!(asked.contains("X-Evil: a  Injected: b\r\n"), "{asked}");
    assert!(
        asked.ends_with("Content-Length: 5\r\nConnection: close\r\n\r\nhello"),
        "{asked}"
    );
}

#[test]
fn redirects_are_followed_as_far_as_they_are_safe() {
    let moved = "HTTP/1.1 302 Found\nLocation: /b\nContent-Length: 0\n\n";
    let fine = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n6\nhello \n5;x=y\nworld\n0\n\n";
    let (address, _) = server(&[moved, fine]);
    let answer = request(&address, "/a").send(&Host::plan()).unwrap();
    assert_eq!(
        (text(&answer).as_str(), answer.url.target().as_str()),
        ("hello world", "/b")
    );
    let (address, _) = server(&[moved]);
    let mut post = request(&address, "/a");
    post.method = "POST".to_owned();
    assert_eq!(post.send(&Host::plan()).unwrap().status, 302);
    let (address, asked) = server(&[moved, fine]);
    let mut post = request(&address, "/a");
    post.method = "POST".to_owned();
    post.body = Some(b"x".to_vec());
    post.follow = Follow::All;
    assert_eq!(post.send(&Host::plan()).unwrap().status, 200);
    assert!(asked.lock().unwrap()[1].starts_with("GET /b "));
}

#[test]
fn one_says_who_one_is_when_asked() {
    let basic = "HTTP/1.1 401 No\nWWW-Authenticate: Basic realm=\"x\"\nContent-Length: 0\n\n";
    let fine = "HTTP/1.1 200 OK\n\nin";
    let (address, asked) = server(&[basic, fine]);
    let mut login = request(&address, "/");
    login.login = Some(("u".to_owned(), "p".to_owned()));
    assert_eq!(text(&login.send(&Host::plan()).unwrap()), "in");
    let asked = asked.lock().unwrap();
    assert!(!asked[0].contains("Authorization"));
    assert!(asked[1].contains("Authorization: Basic dTpw\r\n"));
    let said = digest(
        r#"Digest realm="testrealm@host.com", qop="auth", nonce="n", opaque="o""#,
        "GET",
        "/",
        "u",
        "p",
    )
    .unwrap();
    assert!(
        said.contains(r#"username="u", realm="testrealm@host.com", nonce="n", uri="/""#),
        "{said}"
    );
    assert!(
        said.contains("qop=auth, nc=00000001") && said.ends_with(r#"opaque="o""#),
        "{said}"
    );
}

#[test]
fn what_goes_wrong_is_told() {
    let (address, _) = server(&[
        "HTTP/1.1 200 OK\nContent-Length: 9\n\nshort",
        "",
        "nonsense\n",
    ]);
    let fault = || {
        request(&address, "/")
            .send(&Host::plan())
            .map(|it| it.status)
            .unwrap_err()
            .message
    };
    assert_eq!(fault(), "the connection ended before all had come");
    assert_eq!(fault(), "Remote end closed connection without response");
    assert_eq!(fault(), "the answer is not HTTP");
    let nobody = request("http://127.0.0.1:1", "/")
        .send(&Host::plan())
        .err()
        .unwrap();
    assert_eq!(nobody.message, "Connection refused");
    let mut endless = Cursor::new(vec![b'a'; 100_000]);
    assert_eq!(line(&mut endless).unwrap().len(), 65_536);
}

#[test]
fn netrc_knows_machines() {
    let netrc = "machine a login u password p\nmachine b\n login v\n password q\ndefault login d password e";
    assert_eq!(login_of(netrc, "b"), Some(("v".to_owned(), "q".to_owned())));
    assert_eq!(login_of(netrc, "c"), Some(("d".to_owned(), "e".to_owned())));
    assert_eq!(login_of("machine a login u password p", "c"), None);
}
