// SPDX-License-Identifier: Apache-2.0

import ServerAccess
import Testing

@testable import ONVIF

@Suite struct LoginCheckTests {
    private let time = FakeDevice.time
    private let users = Credentials(["anna": "secret", "bob": ""])
    private let peer = Client(v4: 0xc000_0207)

    private func token(
        _ name: String = "anna", password: String = "secret", nonce: String = "n", time: Int64 = FakeDevice.time
    ) -> UsernameToken {
        let (nonce, created) = (Base64.encode(Array(nonce.utf8)), XMLTime.text(time))
        return UsernameToken(
            name: name, password: UsernameToken.digest(nonce: nonce, created: created, password: password) ?? "",
            nonce: nonce, created: created)
    }

    private func judge(
        _ login: inout LoginCheck, _ token: UsernameToken?, _ authorization: String? = nil, wall: Int64? = nil,
        now: Int64 = 1_000_000_000, from: Client? = nil, request: Int = 0
    ) -> LoginCheck.Verdict {
        login.judge(
            token, for: request, authorization, method: "POST", target: "/x", from: from ?? peer,
            at: .init(wall: wall ?? time, now: now))
    }

    @Test func theDigestIsThatOfTheSpecificationsExample() {
        // ONVIF's Application Programmer's Guide, 6.1.1.3.
        #expect(
            UsernameToken.digest(
                nonce: "LKqI6G/AikKCQrN0zqZFlg==", created: "2010-09-16T07:50:45Z", password: "userpassword")
                == "tuOSpGlFlIXsozq4HFNeeGeFLEI=")
    }

    @Test func takesARightDigestOnce() {
        var login = LoginCheck(users: users)
        #expect(judge(&login, token()) == .granted("anna"))
        #expect(judge(&login, token()) == .replayed)
        #expect(judge(&login, token(nonce: "m")) == .granted("anna"))
        #expect(judge(&login, token("bob", password: "", nonce: "b")) == .granted("bob"))
    }

    @Test func aNonceServesTheRequestsOfAMomentOfOneClient() {
        var login = LoginCheck(users: users)
        #expect(judge(&login, token()) == .granted("anna"))
        #expect(judge(&login, token(), request: 1) == .granted("anna"))
        #expect(judge(&login, token(), request: 1) == .replayed)
        #expect(judge(&login, token(), from: Client(v4: 1), request: 2) == .replayed)
        #expect(judge(&login, token(), now: 2_000_000_000, request: 3) == .replayed)
        for request in 4..<4 + ReplayGuard.mostRequests { _ = judge(&login, token(), request: request) }
        #expect(judge(&login, token(), request: 100) == .replayed)
    }

    @Test func refusesWhatIsWrong() {
        var login = LoginCheck(users: users)
        #expect(judge(&login, nil) == .missing)
        #expect(judge(&login, token(password: "wrong")) == .wrong)
        #expect(judge(&login, token("nobody")) == .wrong)
        var plain = token()
        (plain.isDigest, plain.password) = (false, "secret")
        #expect(judge(&login, plain) == .plain)
        var other = token()
        other.nonce = Base64.encode(Array("other".utf8))
        #expect(judge(&login, other) == .wrong)
        #expect(judge(&login, UsernameToken(name: "anna", password: "", nonce: "", created: "")) == .wrong)
        #expect(judge(&login, UsernameToken(name: "anna", password: "x", nonce: "!", created: "x")) == .wrong)
    }

    @Test func refusesTimesThatDifferTooMuchWithoutCountingThem() {
        var login = LoginCheck(users: users)
        for seconds in [-61, 61, -86_400, 1_000_000] {
            #expect(judge(&login, token(time: time + Int64(seconds))) == .wrongTime)
        }
        for seconds in [-60, 0, 60] {
            #expect(judge(&login, token(nonce: "n\(seconds)", time: time + Int64(seconds))) == .granted("anna"))
        }
    }

    @Test func guessesMakeAnAddressWaitAndNoOther() {
        var login = LoginCheck(users: users)
        for number in 0..<LoginTries.freeTries {
            #expect(judge(&login, token(password: "guess \(number)", nonce: "\(number)")) == .wrong)
        }
        #expect(judge(&login, token()) == .pause(1))
        #expect(judge(&login, token(), from: Client(v4: 1)) == .granted("anna"))
        #expect(judge(&login, token(nonce: "later"), now: 3_000_000_000) == .granted("anna"))
    }

    @Test func aFullGuardRefusesWhatItHasForgotten() {
        var replays = ReplayGuard(most: 100)
        var taken: [(String, Int64)] = []
        for number in 0..<1000 {
            let time = Int64(number % 50)
            let client = Client(v4: UInt32(number % 20))
            if replays.take("n\(number)", time: time, oldest: 0, from: client, request: 0, now: 0) == .new {
                taken.append(("n\(number)", time))
            }
            #expect(replays.count <= 100)
        }
        #expect(taken.count >= 100)
        for (nonce, time) in taken {
            let again = replays.take(nonce, time: time, oldest: 0, from: Client(v4: 30), request: 0, now: 0)
            #expect(again == .used)
        }
    }

    /// Many right logins of one client keep no other one out, whatever times they have.
    @Test func aClientThatSendsManyNoncesKeepsOutItself() {
        var login = LoginCheck(users: users)
        for number in 0..<ReplayGuard.mostOfClient {
            #expect(judge(&login, token(nonce: "n\(number)", time: time + 58)) == .granted("anna"))
        }
        #expect(judge(&login, token(nonce: "more", time: time + 58)) == .crowded)
        #expect(judge(&login, token(nonce: "other"), from: Client(v4: 1)) == .granted("anna"))
        #expect(judge(&login, token(nonce: "later", time: time + 130), wall: time + 130) == .granted("anna"))
    }

    /// Neighbours of an IPv6 network share its pause, but not a login, nor a nonce.
    @Test func aNeighbourKeepsNobodyOutWhoHasLoggedIn() {
        func neighbour(_ number: UInt64) -> Client {
            Client(
                network: PeerAddress(v6: [0xfd] + Array(repeating: 0, count: 15)),
                address: IPAddress(high: 0xfd00 << 48, low: number))
        }
        var login = LoginCheck(users: users)
        #expect(judge(&login, token(), from: neighbour(2)) == .granted("anna"))
        #expect(judge(&login, token(), from: neighbour(3), request: 1) == .replayed)
        for number in 0..<LoginTries.freeTries {
            #expect(judge(&login, token(password: "p\(number)", nonce: "\(number)"), from: neighbour(3)) == .wrong)
        }
        #expect(judge(&login, token(nonce: "guess"), from: neighbour(3)) == .pause(1))
        #expect(judge(&login, token(nonce: "new"), from: neighbour(4)) == .pause(1))
        #expect(judge(&login, token(nonce: "mine"), from: neighbour(2)) == .granted("anna"))
        // A wrong try of its own ends that.
        #expect(judge(&login, token(password: "old", nonce: "old"), from: neighbour(2)) == .wrong)
        #expect(judge(&login, token(nonce: "then"), from: neighbour(2)) == .pause(2))
    }

    @Test func whoIsNoLongerInTheListIsOut() {
        var login = LoginCheck(users: users)
        #expect(judge(&login, token(nonce: "1")) == .granted("anna"))
        login.change(Credentials(["bert": "secret"]))
        #expect(judge(&login, token(nonce: "2")) == .wrong)
        #expect(judge(&login, token("bert", nonce: "3")) == .granted("bert"))
        var open = LoginCheck(users: nil)
        open.change(Credentials(["bert": "secret"]))
        #expect(open.isOpen)
    }

    // MARK: HTTP

    private func header(
        _ nonce: String, count: Int = 1, password: String = "secret", name: String = "anna", uri: String = "/x",
        method: String = "POST", qop: String? = "auth"
    ) -> String {
        let text = String(count, radix: 16)
        let number = String(repeating: "0", count: 8 - text.count) + text
        let response = Authorization.digestResponse(
            .digest, name: name, password: password, realm: LoginCheck.realm, nonce: nonce, method: method, uri: uri,
            counted: qop == nil ? "" : "\(number):c:auth:")
        return """
            Digest username="\(name)", realm="\(LoginCheck.realm)", nonce="\(nonce)", uri="\(uri)", \
            response="\(response)"\(qop == nil ? "" : ", qop=auth, nc=\(number), cnonce=\"c\"")
            """
    }

    private func nonce(_ login: inout LoginCheck, now: Int64 = 1_000_000_000) -> String {
        let challenge = login.challenge(isStale: false, now: now)
        guard case .digest(let digest) = Authorization(challenge) else { return "" }
        return digest.nonce
    }

    @Test func aCountedDigestIsGoodOnceInAnyOrder() {
        var login = LoginCheck(users: users)
        let nonce = nonce(&login)
        for count in [1, 3, 2, 70, 69, 8] {
            #expect(judge(&login, nil, header(nonce, count: count)) == .granted("anna"), "\(count)")
            #expect(judge(&login, nil, header(nonce, count: count)) == .stale, "\(count)")
        }
        #expect(judge(&login, nil, header(nonce, count: 4)) == .stale)
        #expect(judge(&login, nil, header(nonce, count: 0)) == .stale)
    }

    @Test func refusesDigestsOfOtherRequestsAndServers() {
        var login = LoginCheck(users: users)
        let nonce = nonce(&login)
        #expect(judge(&login, nil, header(nonce, uri: "/y")) == .wrong)
        #expect(judge(&login, nil, header(nonce, method: "GET")) == .wrong)
        #expect(judge(&login, nil, header(nonce, password: "wrong")) == .wrong)
        #expect(judge(&login, nil, header(nonce, qop: nil)) == .missing)
        var other = LoginCheck(users: users)
        #expect(judge(&other, nil, header(nonce)) == .stale)
        #expect(judge(&login, nil, header("")) == .stale)
        #expect(judge(&login, nil, "Basic \(Base64.encode(Array("anna:secret".utf8)))") == .plain)
        #expect(judge(&login, nil, header(nonce), now: 302_000_000_000) == .stale)
    }

    @Test func strangersWhoAskForNoncesTakeNoMemory() {
        var book = NonceBook(key: [1], most: 8)
        for _ in 0..<10_000 { _ = book.make(now: 5) }
        #expect(book.count == 0)
        var nonces: [String] = []
        for time in 1...100 {
            let nonce = book.make(now: Int64(time))
            nonces.append(nonce)
            let verdict = book.take(nonce, count: 1, now: 200)
            #expect(verdict == .good)
            #expect(book.count <= 8)
        }
        for nonce in nonces {
            let verdict = book.take(nonce, count: 1, now: 200)
            #expect(verdict == .stale)
        }
    }
}
