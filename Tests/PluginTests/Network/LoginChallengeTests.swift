// SPDX-License-Identifier: Apache-2.0

import Shared
import Testing

@testable import FileSource

/// The login of RFC 7616, section 3.9.1; where that has no example, by an independent computation.
@Suite struct LoginChallengeTests {
    private static let login = ServerLogin(name: "Mufasa", password: "Circle of Life")

    private static func header(_ more: String) -> String {
        #"Digest realm="http-auth@example.org", nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v""# + more
    }

    @Test(arguments: [
        (#", qop="auth, auth-int", algorithm=MD5"#, "8ca523f5e9506fed4657c9700eebdbec"),
        (#", qop="auth, auth-int""#, "8ca523f5e9506fed4657c9700eebdbec"),
        (
            #", qop="auth, auth-int", algorithm=SHA-256"#,
            "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"
        ),
        (
            #", qop=auth, algorithm="SHA-512-256""#,
            "430d05014cecc49cab6fbe03176d41a1da86cbfe24a16580e22aaad928d960d0"
        ),
        (", qop=auth-int, algorithm=MD5-sess", "200cda1c37eb927016d1f97f2c0f04f6"),
        (
            ", qop=auth-int, algorithm=SHA-256-sess",
            "3c19fbb1d58d0c5baff1a2ef49d847b5d0dfd7e3252b355d978d3af7d895912b"
        ),
        ("", "7b2cc3b30e75b4777ea31027084363fd"),
        (", algorithm=SHA-256", "a1306b0595a6c7fe96c448631fb5cfbd5107bd1fe1da729d978dd7446b812363"),
    ]) func answersDigests(more: String, response: String) throws {
        let challenge = try #require(LoginChallenge.best(LoginChallenge.all([Self.header(more)])))
        let answer = challenge.answer(
            Self.login, method: "GET", uri: "/dir/index.html", count: 1,
            clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
        #expect(answer.contains("response=\"\(response)\""), "\(answer)")
        #expect(
            answer.contains("qop=") == more.contains("qop") && answer.contains("nc=00000001") == more.contains("qop"))
    }

    @Test func hashesANameWhereThatIsAsked() throws {
        let challenge = try #require(LoginChallenge.all([Self.header(", userhash=true, opaque=\"a\\\"b\"")]).first)
        let answer = challenge.answer(Self.login, method: "GET", uri: "/", count: 1, clientNonce: "a")
        #expect(answer.hasPrefix(#"Digest username="4238f3a16167373febb9bc4d43db9cc4""#))
        #expect(answer.hasSuffix(#"opaque="a\"b", userhash=true"#))
    }

    @Test func answersBasic() throws {
        let challenge = try #require(LoginChallenge.all(["basic realm=x"]).first)
        let answer = challenge.answer(
            ServerLogin(name: "Aladdin", password: "open sesame"), method: "GET", uri: "/", count: 1, clientNonce: "")
        #expect(answer == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
    }

    /// In any order, in one field or in several, the strongest is answered.
    @Test(arguments: [
        (["Basic realm=a", "Digest realm=b, algorithm=MD5", "Digest realm=c, algorithm=SHA-256"], "c"),
        (["Digest realm=c, algorithm=SHA-256", "Digest realm=b", "Basic realm=a"], "c"),
        (
            [#"Basic realm="a, Digest x=", Digest realm = "b", algorithm=SHA-999, Bearer, Negotiate abc"#],
            "a, Digest x="
        ),
        ([#"Digest realm="x", Basic realm="y""#], "x"),
        (["Digest realm=d,algorithm=SHA-512-256", "Digest realm=c,algorithm=SHA-256"], "d"),
    ]) func takesTheStrongestOneItKnows(fields: [String], realm: String) {
        #expect(LoginChallenge.best(LoginChallenge.all(fields))?.values["realm"] == realm)
    }

    @Test(arguments: [["Bearer realm=x"], ["Digest realm=x, algorithm=SHA-999"], [], [""], ["=", ",,", "\""]])
    func knowsWhatItCannotAnswer(fields: [String]) {
        #expect(LoginChallenge.best(LoginChallenge.all(fields)) == nil)
    }

    @Test func knowsWhatLibavformatHasAnswered() {
        func isAnswered(_ fields: String...) -> Bool { LoginChallenge.isAnsweredByLibav(LoginChallenge.all(fields)) }
        let (basic, md5, sha) = ("Basic realm=a", "Digest realm=b", "Digest realm=c, algorithm=SHA-256")
        #expect(isAnswered(basic) && isAnswered(md5) && isAnswered(basic, md5) && isAnswered(sha, md5))
        #expect(isAnswered(md5 + ", qop=\"auth-int,auth\"") && !isAnswered(md5 + ", qop=auth-int"))
        #expect(!isAnswered(sha) && !isAnswered(md5, sha) && !isAnswered(basic, sha) && !isAnswered("Bearer"))
    }
}
