// SPDX-License-Identifier: Apache-2.0

import ServerAccess
import Testing

@testable import RTSPSink

@Suite struct RequestValuesTests {
    private func values(_ headers: [(String, String)]) -> RequestValues {
        RequestValues(RTSPRequest("SETUP", "rtsp://h/live/trackID=0", headers: HeaderFields([("CSeq", "1")] + headers)))
    }

    /// Values as real clients send them, and the largest that are taken.
    @Test(arguments: [
        ("Transport", "RTP/AVP;unicast;client_port=5000-5001"),
        ("Transport", Array(repeating: "RTP/AVP/TCP", count: 16).joined(separator: ",")),
        ("Session", "abc;timeout=60"), ("Range", "npt=0.000-"), ("Require", "www.onvif.org/ver20/backchannel"),
        ("Authorization", "Digest username=\"" + String(repeating: "x", count: 4000) + "\""),
    ]) func takesWhatIsWithinBounds(name: String, value: String) { #expect(!values([(name, value)]).isExcessive) }

    @Test(arguments: [
        ("Transport", Array(repeating: "RTP/AVP/TCP", count: 17).joined(separator: ",")),
        ("Transport", "RTP/AVP;" + String(repeating: "x=y;", count: 600)),
        ("Session", String(repeating: "s", count: 257)),
        ("Range", "npt=" + String(repeating: "0", count: 300) + "-"), ("Require", String(repeating: "r,", count: 600)),
        ("Authorization", "Digest " + String(repeating: "a=b,", count: 2000)),
    ]) func refusesWhatExceedsThem(name: String, value: String) {
        let asked = values([(name, value)])
        #expect(asked.isExcessive)
        // Nothing is judged for it, and what it says is not answered.
        #expect(asked.path == nil)
        var signalling = Signalling()
        _ = signalling.open(1, peer: .loopback, local: .loopback, isSecure: false, now: 0)
        guard case .respond(let response)? = signalling.handle(asked, from: 1, now: 0).first else {
            Issue.record("no answer")
            return
        }
        #expect(response.status == .badRequest)
        #expect(response.headers["CSeq"] == "1")
    }

    /// A proof is worth something for the very challenge that was judged: not after the path was given new users in
    /// between.
    @Test func provesNothingForAnotherEditionOfThePath() {
        var signalling = Signalling()
        let description = SessionDescription(
            sessionID: 1, address: "", name: "live", sps: RTSPHeaderTests.sps, pps: RTSPHeaderTests.pps)
        let old = Challenge(scheme: .basic, credentials: Credentials(["anna": "old"]))
        signalling.setPath("/live", ServedPath(description: description, ssrc: 1, challenge: old))
        _ = signalling.open(1, peer: .loopback, local: .loopback, isSecure: false, now: 0)
        var asked = RequestValues(
            RTSPRequest(
                "DESCRIBE", "rtsp://h/live",
                headers: HeaderFields([
                    ("CSeq", "1"), ("Authorization", Authorization.basic(name: "anna", password: "old").text),
                ])))
        asked.prove(signalling.demand(of: "/live", on: 1)!)
        signalling.setPath(
            "/live",
            ServedPath(
                description: description, ssrc: 1,
                challenge: Challenge(scheme: .basic, credentials: Credentials(["anna": "new"]))))
        guard case .respond(let response)? = signalling.handle(asked, from: 1, now: 0).first else {
            Issue.record("no answer")
            return
        }
        #expect(response.status == .unauthorized)
        #expect(signalling.failedLogins.totals.isEmpty)
    }

    /// What is looked at under the lock does not grow with the clients there are, nor with what a request says. It grew
    /// with both: each request walked all sessions, and parsed its headers there.
    @Test func looksAtAsLittleWithThousandsOfSessionsAsWithOne() {
        func visits(sessions: Int, transport: String) -> Int {
            var policy = SessionPolicy(serverPorts: .init(8000, 8001))
            policy.mostConnectionsPerAddress = 100_000
            var signalling = Signalling(policy: policy)
            let description = SessionDescription(
                sessionID: 1, address: "", name: "live", sps: RTSPHeaderTests.sps, pps: RTSPHeaderTests.pps)
            var path = ServedPath(description: description, ssrc: 1)
            path.mostReaders = 100_000
            signalling.setPath("/live", path)
            for number in 1...UInt64(sessions) {
                _ = signalling.open(number, peer: .loopback, local: .loopback, isSecure: false, now: 0)
                let request = RTSPRequest(
                    "SETUP", "rtsp://h/live",
                    headers: HeaderFields([("CSeq", "1"), ("Transport", "RTP/AVP/TCP;interleaved=0-1")]))
                _ = signalling.handle(request, from: number, now: 0)
            }
            #expect(signalling.sessions.count == sessions)
            signalling.visits = 0
            for method in ["OPTIONS", "DESCRIBE", "GET_PARAMETER", "SETUP"] {
                let request = RTSPRequest(
                    method, "rtsp://h/live", headers: HeaderFields([("CSeq", "2"), ("Transport", transport)]))
                _ = signalling.handle(request, from: 1, now: 0)
            }
            return signalling.visits
        }
        let few = visits(sessions: 1, transport: "RTP/AVP/TCP;interleaved=0-1")
        #expect(few <= 16)
        #expect(visits(sessions: 5000, transport: "RTP/AVP/TCP;interleaved=0-1") == few)
        // 15 kB of transports are refused before the lock is taken.
        #expect(
            visits(sessions: 5000, transport: String(repeating: "RTP/AVP;unicast;client_port=1-2,", count: 480)) <= 16)
    }
}
