// SPDX-License-Identifier: Apache-2.0

import FrameSupport
import Testing

@testable import ControlServer
@testable import FrameCore

/// Requests with their thread, which ends with them.
final class RunningRequests {
    let run = FakeRun()
    let api: ControlAPI
    private let thread: NamedThread

    init() throws {
        api = .over(run)
        let requests = api.pictures
        thread = try NamedThread("test") { requests.run() }
    }

    deinit {
        api.pictures.close()
        thread.end.wait(milliseconds: 2000)
    }
}

@Suite struct PictureRequestsTests {
    @Test func aSnapshotIsTheNextPicture() async throws {
        let requests = try RunningRequests()
        let asked = await requests.api.askPicture(
            "/api/v1/stages/cam/picture?width=64&fit=fill&rotate=90&mirror=true&quality=70")
        #expect(asked.status == 200)
        #expect(asked.text == "picture 64")
        #expect(asked.field("Content-Type") == "image/jpeg")
        #expect(asked.field("Framehost-Frame") == "0")
        #expect(asked.field("Framehost-Captured")?.hasSuffix("Z") == true)
        var form = PictureForm(.jpeg)
        form.width = 64
        form.fit = .fill
        form.quarterTurns = 1
        form.isMirrored = true
        form.quality = 70
        #expect(requests.run.state.withLock { $0.encoded } == [form])
    }

    @Test func previewsAreMirroredWhereTheCameraFacesWhoLooks() async throws {
        let requests = try RunningRequests()
        requests.run.state.withLock { $0.facesWhoLooks = true }
        for query in ["", "?preview=true", "?preview=true&mirror=true"] {
            #expect(await requests.api.askPicture("/api/v1/stages/cam/picture\(query)").status == 200)
        }
        #expect(requests.run.state.withLock { $0.encoded.map(\.isMirrored) } == [false, true, false])
    }

    @Test func noneYetIsANormalAnswer() async throws {
        let requests = try RunningRequests()
        let asked = await requests.api.ask("GET", "/api/v1/stages/text/picture?format=png")
        #expect(asked.status == 204)
        #expect(asked.text == "")
    }

    @Test func aStageThatIsNotThereIsNotFound() async throws {
        let requests = try RunningRequests()
        #expect(await requests.api.ask("GET", "/api/v1/stages/nothing/picture").status == 404)
        #expect(await requests.api.ask("GET", "/api/v1/stages/nothing/pictures").status == 404)
    }

    @Test func encodesEachFormOfAFrameOnce() async throws {
        let requests = try RunningRequests()
        requests.run.state.withLock { $0.givers = [] }
        // None is given before all have asked, so all get the same frame.
        let shots = await withTaskGroup(of: String.self) { group in
            for number in 0..<12 {
                group.addTask { [api = requests.api] in
                    var form = PictureForm()
                    form.width = number % 2 == 0 ? 64 : 32
                    let outcome = await api.pictures.next(of: "cam", as: form, patience: 60_000_000_000)
                    guard case .shot(let shot) = outcome else { return "none" }
                    return String(decoding: shot.piece.bytes, as: UTF8.self)
                }
            }
            group.addTask { [run = requests.run, api = requests.api] in
                while api.pictures.waitingCount < 12 { await Task.yield() }
                run.state.withLock { $0.givers = ["cam"] }
                return ""
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(shots.count { $0 == "picture 64" } == 6)
        #expect(shots.count { $0 == "picture 32" } == 6)
        #expect(requests.run.state.withLock { Set($0.encoded).count } == 2)
        #expect(requests.run.state.withLock { $0.encoded.count } == 2)
    }

    @Test func asksNobodyWhileNobodyLooks() async throws {
        let requests = try RunningRequests()
        _ = await requests.api.ask("GET", "/api/v1/stages/cam/picture")
        let asked = requests.run.state.withLock { $0.asked }
        try await Task.sleep(nanoseconds: 300_000_000)
        #expect(requests.run.state.withLock { $0.asked } == asked)
    }

    /// One that came while another was encoded is older than a question of that time.
    @Test func answersWithAPictureThatCameAfterTheQuestion() async throws {
        let requests = try RunningRequests()
        let (run, pictures) = (requests.run, requests.api.pictures)
        func number(_ outcome: PictureRequests.Outcome) -> UInt64? {
            if case .shot(let shot) = outcome { shot.sequenceNumber } else { nil }
        }
        run.state.withLock { ($0.givers, $0.isEncoderBusy) = (["cam"], true) }
        async let early = pictures.next(of: "text", as: PictureForm(), patience: 60_000_000_000)
        while run.state.withLock({ $0.inboxes["text"] == nil }) { await Task.yield() }
        async let busy = pictures.next(of: "cam", as: PictureForm(), patience: 60_000_000_000)
        while run.state.withLock({ $0.encoded.isEmpty }) { await Task.yield() }
        try run.givePicture(of: "text")
        async let late = pictures.next(of: "text", as: PictureForm(), patience: 60_000_000_000)
        while pictures.waitingCount < 2 { await Task.yield() }
        run.state.withLock { $0.isEncoderBusy = false }
        #expect(number(await busy) == 0)
        #expect(number(await early) == 1, "it lay there for who asked before")
        run.state.withLock { $0.givers = ["cam", "text"] }
        #expect(number(await late) == 2)
    }

    @Test func closingEndsEveryWait() async throws {
        let requests = try RunningRequests()
        requests.run.state.withLock { $0.givers = [] }
        async let shot = requests.api.pictures.next(of: "cam", as: PictureForm(), patience: Int64.max / 4)
        while requests.api.pictures.waitingCount < 1 { await Task.yield() }
        requests.api.pictures.close()
        guard case .none = await shot else {
            Issue.record("there was a picture")
            return
        }
    }

    @Test func aStreamIsMultipart() async throws {
        let requests = try RunningRequests()
        let asked = await requests.api.ask("GET", "/api/v1/stages/cam/pictures?count=3&rate=60")
        #expect(asked.field("Content-Type") == "multipart/x-mixed-replace; boundary=framehost")
        guard case .stream(let run) = asked.answer.body else {
            Issue.record("no stream")
            return
        }
        let listener = Listener { _ in false }
        try await run(listener)
        let parts = listener.text.split(separator: "--framehost\r\n")
        #expect(parts.count == 3)
        #expect(parts.allSatisfy { $0.contains("Content-Length: 9\r\n") && $0.contains("\r\n\r\npicture 0\r\n") })
        #expect(listener.text.hasSuffix("--framehost--\r\n"))
        #expect(requests.api.viewers.withLock { $0.pictures } == 0)
    }
}
