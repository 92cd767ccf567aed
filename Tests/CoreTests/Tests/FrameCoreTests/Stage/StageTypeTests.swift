// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct StageTypeTests {
    @Test func knowsWhichProtocolAStageAdopts() {
        let kinds = [
            StageType(CountingSource.self), StageType(ProbeFilter.self), StageType(CopyTransform.self),
            StageType(PairJoin.self),
            StageType(RecordingSink.self),
        ].map(\.kind)
        #expect(kinds == StageKind.allCases)
    }

    @Test func goesFromAPluginToTheHostWithItsOptions() {
        let exports = PluginExports.take(PluginEntry.export(ProbeFilter.self, RecordingSink.self))
        #expect(exports.stages.map(\.info.id) == ["probe", "recording-sink"])
        let names = exports.stages[1].options.map(\.name)
        #expect(names == ["log", "sleepUs", "keep", "pauseAt", "waitsForStop", "failAt"])
    }

    @Test func demandsWhatItDeclares() {
        let filter = ProbeFilter.declaredDemand
        #expect(filter.hold == 8 && filter.outputBuffers == .sameAsInput && filter.access == .read)
        #expect(AddOne.declaredDemand.access == .modify)
        #expect(CopyTransform.declaredDemand.outputBuffers == .own && CopyTransform.declaredDemand.delay == 16)
    }
}

/// Says the chain's name, and is not made.
private final class NamedSource: Source {
    static let info = StageInfo(id: "named", summary: "Says the chain's name.", output: .anyVideo)
    var options: NoOptions

    init(options: NoOptions, context: StageContext) throws {
        throw FrameHostError(.invalidConfiguration, what: "the chain is '\(context.chainName)'")
    }

    func negotiate() throws -> MediaFormat { .video(VideoFormat(.gray8, width: 2, height: 2)) }
    func produce(_ output: Output) throws -> SourceProgress { .ended }
}

@Suite struct StageContextTests {
    @Test(arguments: [
        ("/videos", "a.mp4", "/videos/a.mp4"), ("/videos", "/tmp/a.mp4", "/tmp/a.mp4"), (".", "a.mp4", "a.mp4"),
        ("", "a.mp4", "a.mp4"),
        ("clips", "../a.mp4", "clips/../a.mp4"),
    ])
    func meansRelativePathsFromTheChainFilesFolder(folder: String, path: String, resolved: String) {
        #expect(StageContext(stageID: "s", folder: folder).resolve(path) == resolved)
    }

    @Test(arguments: [
        ("yard.json", "yard"), ("/etc/framehost/front door.json", "front door"), ("../yard", "yard"),
        (".json", ".json"), ("-", "-"),
    ])
    func knowsTheChainsName(file: String, name: String) throws {
        var request = ChainRequest(file: file, folder: ".", stages: [])
        request.stages = [
            StageRequest(id: "cam", type: StageType(NamedSource.self)),
            StageRequest(id: "end", type: StageType(RecordingSink.self), from: [0]),
        ]
        let errors = #expect(throws: FrameHostErrors.self) { _ = try Chain.plan(request) }
        #expect(errors?.errors.first?.what == "the chain is '\(name)'", "\(errors?.description ?? "")")
    }

    @Test func postsEventsInTheStagesName() {
        let context = StageContext(stageID: "rec", clock: ManualClock(at: 7))
        context.post("recording-did-start", text: "rec: recording.", details: ["path": "a.mp4"])
        context.log("a line", level: .warning)
        let events = context.events.subscribe().take().events
        #expect(events.map(\.name) == ["recording-did-start", "log"])
        #expect(events.allSatisfy { $0.stage == "rec" && $0.time == 7 })
        #expect(events[0].details.text() == #"{"path":"a.mp4"}"# && events[1].level == .warning)
    }
}

@Suite struct StageDriverTests {
    private let format = MediaFormat.video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(50)))

    @Test func drivesAFilterInPlace() throws {
        let driver = try StageDriver(AddOne.self, input: format)
        try driver.send(driver.makeFrame { $0.withMutablePlane(0) { $0.row(3)[4] = 9 } })
        guard let frame = driver.takeFrame() else {
            Issue.record("no frame")
            return
        }
        let (pixel, sequence) = (frame.withPlane(0) { $0.row(3)[4] }, frame.sequenceNumber)
        #expect(pixel == 10 && sequence == 0)
        let isEmpty = driver.takeFrame() == nil
        #expect(isEmpty)
    }

    @Test func countsTimeByTheFrameRate() throws {
        let driver = try StageDriver(ProbeFilter.self, input: format)
        for _ in 0..<3 { try driver.send(driver.makeFrame()) }
        var times: [Int64] = []
        while let frame = driver.takeFrame() { times.append(frame.pts.nanoseconds) }
        #expect(times == [0, 20_000_000, 40_000_000])
    }

    @Test func handsOutWhatTheStageThrows() throws {
        let driver = try StageDriver(ProbeFilter.self, options: #"{ "failAt": 1 }"#, input: format)
        try driver.send(driver.makeFrame())
        let error = #expect(throws: FrameHostError.self) { try driver.send(driver.makeFrame()) }
        #expect(
            error?.description == "probe (probe): frame 1, PTS 0.020 s: the probe was told to fail. Tell it otherwise.")
    }

    @Test func countsDropsAndKeptBuffers() throws {
        let driver = try StageDriver(ProbeFilter.self, options: #"{ "dropEvery": 2, "keep": 3 }"#, input: format)
        for _ in 0..<6 { try driver.send(driver.makeFrame()) }
        #expect(driver.dropCount(.byStage) == 3)
        #expect(driver.keptBuffers == 3)
    }

    /// A frame may be shared after the stage that gave it is gone.
    @Test func givesFramesThatOutliveIt() throws {
        var driver: StageDriver<CopyTransform>? = try StageDriver(CopyTransform.self, input: format)
        try driver!.send(driver!.makeFrame { $0.withMutablePlane(0) { $0.row(0)[0] = 5 } })
        guard let frame = driver!.takeFrame() else {
            Issue.record("no frame")
            return
        }
        driver = nil
        let other = frame.share()
        let pixel = other.withPlane(0) { $0.row(0)[0] }
        #expect(pixel == 5)
    }

    @Test func drivesASourceAndDrainsATransform() throws {
        let source = try StageDriver(CountingSource.self, options: #"{ "count": 2 }"#)
        #expect(try source.produce() == .more)
        #expect(try source.produce() == .more)
        #expect(try source.produce() == .ended)
        let late = try StageDriver(CopyTransform.self, options: #"{ "delay": 2 }"#, input: format)
        for _ in 0..<3 { try late.send(late.makeFrame()) }
        var count = 0
        while let frame = late.takeFrame() { count += Int(frame.sequenceNumber) + 1 }
        #expect(count == 1)
        try late.drain()
        while let frame = late.takeFrame() { count += Int(frame.sequenceNumber) + 1 }
        #expect(count == 1 + 2 + 3)
    }
}
