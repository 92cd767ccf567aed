// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import ControlServer
@testable import FrameCore

@Suite struct LiveHandshakeTests {
    private static let good = [
        "Host: 127.0.0.1:8080", "Upgrade: websocket", "Connection: keep-alive, Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", "Origin: http://127.0.0.1:8080",
    ]

    private func head(_ fields: [String], line: String = "GET /api/v1/live HTTP/1.1") -> [UInt8] {
        Array(([line] + fields + ["", ""]).joined(separator: "\r\n").utf8)
    }

    @Test func readsAHandshakeHoweverItComes() throws {
        let bytes = head(Self.good + ["Sec-WebSocket-Protocol: framehost.v1, framehost.token.6162"])
        for count in 0..<bytes.count { #expect(LiveHandshake.look(bytes[..<count]) == .more) }
        guard case .live(let request) = LiveHandshake.look(bytes + [1, 2, 3]) else {
            Issue.record("no handshake")
            return
        }
        #expect(request.byteCount == bytes.count)
        #expect(request.key == "dGhlIHNhbXBsZSBub25jZQ==")
        #expect(request.head.host == "127.0.0.1:8080")
        #expect(request.head["origin"] == "http://127.0.0.1:8080")
        #expect(LiveProtocol.offered(in: request.head) == ["framehost.v1", "framehost.token.6162"])
        #expect(LiveProtocol.token(offeredIn: request.head) == .some("ab"))
    }

    /// HTTP's own parser judges what is odd, and answers.
    @Test(arguments: [
        "GET /api/v1/live?x HTTP/1.1", "GET /api/v1/liver HTTP/1.1", "GET /api/v1/live HTTP/1.0",
        "POST /api/v1/live HTTP/1.1", "GET /healthz HTTP/1.1", "get /api/v1/live HTTP/1.1", "\u{16}\u{3}\u{1}",
    ]) func leavesOtherRequestsToHTTP(line: String) {
        #expect(LiveHandshake.look(head(Self.good, line: line)) == .http)
    }

    @Test(arguments: [
        ["Host: 127.0.0.1:8080"], ["Upgrade: h2c"], ["Sec-WebSocket-Version: 8"],
        ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ="], ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j ZQ=="],
        ["Connection: close"], ["Content-Length: 5"], ["Transfer-Encoding: chunked"], ["No colon"], [": nameless"],
        [" folded: line"], ["Na me: x"], ["X: \u{7}"], ["X: ä"],
    ]) func leavesOddHandshakesToHTTP(field: [String]) {
        let name = field[0].prefix { $0 != ":" }
        let kept = Self.good.filter { !$0.hasPrefix("\(name):") || name == "Host" }
        #expect(LiveHandshake.look(head(kept + field)) == .http)
    }

    @Test func leavesALongHeadToHTTP() {
        let long = head(Self.good + ["X: " + String(repeating: "x", count: 20_000)])
        #expect(LiveHandshake.look(long) == .http)
        let many = head(Self.good + (0..<120).map { "X\($0): x" })
        #expect(LiveHandshake.look(many) == .http)
    }

    /// Any byte of a good handshake changed: never a crash, and the gate sees what is taken.
    @Test func takesOrLeavesWhateverIsChanged() {
        let bytes = head(Self.good)
        for index in bytes.indices {
            for value in [0, 10, 13, 32, 58, 127, 255] as [UInt8] {
                var changed = bytes
                changed[index] = value
                if case .live(let request) = LiveHandshake.look(changed) { #expect(request.byteCount <= changed.count) }
            }
        }
    }

    @Test func readsTheTokenFromASubprotocol() {
        func token(_ fields: String...) -> String?? {
            LiveProtocol.token(
                offeredIn: RequestHead(
                    method: "GET", target: "/", fields: fields.map { ("sec-websocket-protocol", $0) }))
        }
        #expect(token() == .none)
        #expect(token("framehost.v1") == .none)
        #expect(token("framehost.v1", "framehost.token.2e7E") == .some(".~"))
        #expect(token("framehost.token.7") == .some(nil))
        #expect(token("framehost.token.zz") == .some(nil))
        #expect(token("framehost.token.ff") == .some(nil))
        #expect(token("framehost.token." + String(repeating: "61", count: 257)) == .some(nil))
    }

    @Test func theHeadIsFortyBytesBigEndian() {
        let head = LiveHead(
            kind: .h264, isKeyframe: true, followsGap: true, orientation: .leftMirrored, isMirroredInPreviews: true,
            preview: 0x0102, number: 0x0304_0506, sequenceNumber: 7, capturedAt: -1, pts: 9, reorderUs: 10,
            durationUs: 11)
        #expect(
            head.bytes == [2, 0b11_1111, 1, 2, 3, 4, 5, 6] + [0, 0, 0, 0, 0, 0, 0, 7]
                + [UInt8](repeating: 255, count: 8) + [0, 0, 0, 0, 0, 0, 0, 9] + [0, 0, 0, 10, 0, 0, 0, 11])
        #expect(head.bytes.count == LiveProtocol.headBytes)
    }
}

@Suite struct LiveMessageTests {
    private func read(_ text: String) throws -> LiveMessage { try LiveMessage(Array(text.utf8)) }

    @Test func readsWhatAPageSays() throws {
        var request = PreviewRequest(stage: "cam")
        request.form.width = 320
        request.form.height = 180
        request.form.fit = .fill
        request.form.quality = 70
        request.form.quarterTurns = 1
        request.form.isMirrored = true
        request.intervalNs = 100_000_000
        let text =
            #"{"open":1,"stage":"cam","width":320,"height":180,"fit":"fill","quality":70,"rotate":90,"mirror":true,"rate":10}"#
        #expect(try read(text) == .open(preview: 1, request))
        #expect(
            try read(#"{"open":65535,"stage":"h","kind":"h264"}"#)
                == .open(preview: 65535, PreviewRequest(stage: "h", kind: .h264)))
        #expect(
            try read(#"{"open":1,"stage":"h","kind":"h265"}"#)
                == .open(preview: 1, PreviewRequest(stage: "h", kind: .h265)))
        #expect(try read(#"{"close":1}"#) == .close(preview: 1))
        #expect(try read(#"{"pause":0}"#) == .pause(preview: 0))
        #expect(try read(#"{"resume":2}"#) == .resume(preview: 2))
        #expect(try read(#"{"shown":1,"number":4294967295}"#) == .shown(preview: 1, number: .max))
        #expect(try read(#"{"ping":-5}"#) == .ping(-5))
        #expect(try read(#"{"events":true}"#) == .events(after: nil))
        #expect(try read(#"{"events":"run-3"}"#) == .events(after: "run-3"))
    }

    @Test(arguments: [
        ("", "the message must be JSON with at most 64 values, 3 levels deep"),
        ("{", "the message must be JSON with at most 64 values, 3 levels deep"),
        ("[1]", "a message must be an object, but is a list"),
        ("{}", "a message must have exactly one of open, close, pause, resume, shown, ping, events"),
        (
            #"{"pause":1,"resume":1}"#,
            "a message must have exactly one of open, close, pause, resume, shown, ping, events"
        ),
        (#"{"pause":1,"x":1}"#, "'pause' has no such member"),
        (#"{"pause":65536}"#, "'pause' must be a whole number from 0 to 65535"),
        (#"{"pause":"1"}"#, "'pause' must be a whole number from 0 to 65535"),
        (#"{"pause":1.5}"#, "'pause' must be a whole number from 0 to 65535"),
        (#"{"open":1}"#, "'stage' must be the id of a stage"),
        (#"{"open":1,"stage":""}"#, "'stage' must be the id of a stage"),
        (#"{"open":1,"stage":"cam","kind":"vp8"}"#, #"'kind' must be "jpeg", "h264" or "h265""#),
        (#"{"open":1,"stage":"cam","kind":3}"#, #"'kind' must be "jpeg", "h264" or "h265""#),
        (#"{"open":1,"stage":"cam","width":8}"#, "'width' must be a whole number from 16 to 4096"),
        (#"{"open":1,"stage":"cam","height":5000}"#, "'height' must be a whole number from 16 to 4096"),
        (#"{"open":1,"stage":"cam","fit":"wide"}"#, #"'fit' must be "contain" or "fill""#),
        (#"{"open":1,"stage":"cam","rotate":45}"#, "'rotate' must be 0, 90, 180 or 270"),
        (#"{"open":1,"stage":"cam","rotate":"90"}"#, "'rotate' must be 0, 90, 180 or 270"),
        (#"{"open":1,"stage":"cam","mirror":1}"#, "'mirror' must be true or false"),
        (#"{"open":1,"stage":"cam","rate":0}"#, "'rate' must be a number from 0.1 to 60"),
        (#"{"open":1,"stage":"cam","rate":1e999}"#, "'rate' must be a number from 0.1 to 60"),
        (#"{"open":1,"stage":"cam","quality":0}"#, "'quality' must be a whole number from 1 to 100"),
        (#"{"open":1,"stage":"cam","widht":320}"#, "'open' has no such member"),
        (
            #"{"open":1,"stage":"h","kind":"h264","width":320}"#,
            "an H.264 preview shows the encoder's own picture, so it has no 'width'"
        ),
        (
            #"{"open":1,"stage":"h","kind":"h265","rate":3}"#,
            "an H.265 preview shows the encoder's own picture, so it has no 'rate'"
        ),
        (#"{"shown":1}"#, "'number' must be a whole number from 0 to 4294967295"),
        (#"{"shown":1,"number":-1}"#, "'number' must be a whole number from 0 to 4294967295"),
        (#"{"ping":"x"}"#, "'ping' must be a whole number"),
        (#"{"events":false}"#, "'events' must be true or the id of an event"),
        (#"{"a":{"b":{"c":{"d":{"e":1}}}}}"#, "the message must be JSON with at most 64 values, 3 levels deep"),
    ]) func refusesWhatIsWrong(text: String, what: String) {
        let fault = #expect(throws: LiveFault.self) { try read(text) }
        #expect(fault?.what == what)
        #expect(fault?.remedy.isEmpty == false)
    }
}

@Suite struct LiveSessionTests {
    private static let ms: Int64 = 1_000_000
    private let shot = PictureRequests.Outcome.shot(.init(piece: .init([1, 2, 3]), sequenceNumber: 9, capturedAt: 5))

    private func request(_ change: (inout PreviewRequest) -> Void = { _ in }) -> PreviewRequest {
        var request = PreviewRequest(stage: "cam")
        change(&request)
        return request
    }

    private func asked(_ key: Int, _ delay: Int64 = 0, _ form: PictureForm = PreviewRequest(stage: "").form)
        -> LiveSession.Action
    {
        .ask(key, stage: "cam", form: form, delayNs: delay)
    }

    private func sent(_ number: UInt32, preview: UInt16 = 1) -> LiveSession.Action {
        .binary(
            LiveHead(kind: .jpeg, preview: preview, number: number, sequenceNumber: 9, capturedAt: 5), .init([1, 2, 3]))
    }

    @Test func onePictureIsInFlightAndTheNextIsAskedForWhenItWasDrawn() {
        var session = LiveSession()
        #expect(session.take(.open(preview: 1, request()), now: 0) == [asked(1)])
        #expect(session.take(shot, for: 1, now: 10) == [sent(1)])
        // Of another number, or another preview: of before.
        #expect(session.take(.shown(preview: 1, number: 7), now: 20) == [])
        #expect(session.take(.shown(preview: 2, number: 1), now: 20) == [])
        #expect(session.take(.shown(preview: 1, number: 1), now: 30) == [asked(1)])
        #expect(session.take(.shown(preview: 1, number: 1), now: 30) == [], "once")
        #expect(session.take(shot, for: 1, now: 40) == [sent(2)])
    }

    @Test func keepsToTheRate() {
        var session = LiveSession()
        let request = request { $0.intervalNs = 100 * Self.ms }
        #expect(session.take(.open(preview: 1, request), now: 0) == [asked(1)])
        #expect(session.take(shot, for: 1, now: 5 * Self.ms) == [sent(1)])
        #expect(session.take(.shown(preview: 1, number: 1), now: 10 * Self.ms) == [asked(1, 90 * Self.ms)])
        #expect(session.take(shot, for: 1, now: 104 * Self.ms) == [sent(2)])
        // Late by more than a beat: the next one is not made up for.
        #expect(session.take(.shown(preview: 1, number: 2), now: 900 * Self.ms) == [asked(1)])
        #expect(session.take(shot, for: 1, now: 905 * Self.ms) == [sent(3)])
        #expect(session.take(.shown(preview: 1, number: 3), now: 906 * Self.ms) == [asked(1)])
    }

    @Test func aPausedPreviewIsAskedForNothing() {
        var session = LiveSession()
        _ = session.take(.open(preview: 1, request()), now: 0)
        #expect(session.take(.pause(preview: 1), now: 1) == [])
        #expect(session.take(.resume(preview: 1), now: 2) == [], "a question is under way still")
        #expect(session.take(.pause(preview: 1), now: 3) == [])
        #expect(session.take(shot, for: 1, now: 4) == [], "what comes meanwhile is left out")
        #expect(session.take(.resume(preview: 1), now: 5) == [asked(1)])
        #expect(session.take(shot, for: 1, now: 6) == [sent(1)])
        #expect(session.take(.pause(preview: 9), now: 7) == [], "there is none")
    }

    @Test func anotherRequestTakesTheOldOnesPlace() {
        var session = LiveSession()
        _ = session.take(.open(preview: 1, request()), now: 0)
        let small = request { $0.form.width = 64 }
        #expect(session.take(.open(preview: 1, small), now: 1) == [])
        #expect(session.take(shot, for: 1, now: 2) == [asked(1, 0, small.form)], "that was of the old size")
        #expect(session.take(shot, for: 1, now: 3) == [sent(1)])
        #expect(session.count == 1)
    }

    @Test func anotherStageIsAnotherPreview() {
        var session = LiveSession()
        _ = session.take(.open(preview: 1, request()), now: 0)
        var other = PreviewRequest(stage: "text")
        other.form.width = 64
        #expect(
            session.take(.open(preview: 1, other), now: 1) == [.ask(2, stage: "text", form: other.form, delayNs: 0)])
        #expect(session.take(shot, for: 1, now: 2) == [], "of the one that has gone")
        #expect(session.take(shot, for: 2, now: 3) == [sent(1)])
    }

    @Test func saysOnceThatThereIsNoneYet() {
        var session = LiveSession()
        _ = session.take(.open(preview: 1, request()), now: 0)
        #expect(session.take(.none, for: 1, now: 1) == [.text(#"{"none":1}"#), asked(1)])
        #expect(session.take(.none, for: 1, now: 2) == [asked(1)])
        #expect(session.take(shot, for: 1, now: 3) == [sent(1)])
        _ = session.take(.shown(preview: 1, number: 1), now: 4)
        #expect(session.take(.none, for: 1, now: 5) == [.text(#"{"none":1}"#), asked(1)])
    }

    @Test func aPreviewThatCannotBeEndsWithTheReason() {
        var session = LiveSession()
        _ = session.take(.open(preview: 3, request()), now: 0)
        let error = FrameHostError(.invalidConfiguration, place: "cam", what: "no such stage", remedy: "Name another.")
        #expect(
            session.take(PictureRequests.Outcome.failed(error), for: 1, now: 1) == [
                .text(
                    #"{"ended":3,"error":{"what":"no such stage","place":"cam","remedy":"Name another.","code":"invalid-configuration"}}"#
                )
            ])
        #expect(session.count == 0)
    }

    @Test func hasABoundOfPreviewsAndOfQuestions() {
        var session = LiveSession()
        for id in 0..<UInt16(LiveProtocol.mostPreviews) {
            #expect(session.take(.open(preview: id, request()), now: 0).count == 1)
        }
        let refused = session.take(.open(preview: 99, request()), now: 0)
        #expect(refused.last == .close(1008, "open: this connection already has 32 previews, the most"))
        #expect(session.isClosed)
        var other = LiveSession()
        for _ in 0..<LiveProtocol.mostPreviews {
            #expect(other.take(.open(preview: 1, request()), now: 0).count == 1)
            #expect(other.take(.close(preview: 1), now: 0) == [])
        }
        #expect(
            other.take(.open(preview: 1, request()), now: 0).last
                == .close(1008, "open: previews are opened and closed faster than the stages answer"))
    }

    @Test func hasABoundOfMessages() {
        var session = LiveSession()
        for _ in 0..<LiveProtocol.mostMessagesPerSecond { #expect(session.take(.pause(preview: 0), now: 5) == []) }
        #expect(session.take(.pause(preview: 0), now: 1_000_000_001) == [], "another second")
        for _ in 1..<LiveProtocol.mostMessagesPerSecond { _ = session.take(.pause(preview: 0), now: 1_000_000_002) }
        #expect(
            session.take(.pause(preview: 0), now: 1_000_000_003).last
                == .close(1007, "message: a client must send at most 10000 messages a second, but has sent more"))
        #expect(session.take(.ping(1), now: 2_000_000_000) == [], "it has ended")
    }

    @Test func answersPingsAndReadsEventsOnce() {
        var session = LiveSession()
        #expect(session.take(.ping(7), now: 1234) == [.text(#"{"pong":7,"now":1234}"#)])
        #expect(session.take(.events(after: "run-3"), now: 0) == [.readEvents(after: "run-3")])
        #expect(
            session.take(.events(after: nil), now: 0).last
                == .close(1008, "events: this connection already reads events"))
    }

    @Test func aReasonFitsAClosingFrame() {
        var session = LiveSession()
        guard case .close(let code, let reason) = session.end(1008, String(repeating: "ä", count: 100)).last else {
            Issue.record("no close")
            return
        }
        #expect(code == 1008 && reason.utf8.count == 120)
        #expect(session.end(1008, "again") == [])
    }
}
