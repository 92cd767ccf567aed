// SPDX-License-Identifier: Apache-2.0

import CV4L2
import FrameCore
import Glibc
import Testing

@testable import V4L2Source

/// A scripted driver that a chain's threads call while a test changes it, at the pace of a camera.
private final class SharedCamera: DeviceCalls {
    private let camera: Locked<ScriptedCamera>

    init(_ camera: ScriptedCamera) {
        camera.clock = ChainClock()
        self.camera = Locked(camera)
    }

    func change<Result>(_ body: (ScriptedCamera) throws -> Result) rethrows -> Result {
        try camera.withLock { try body($0) }
    }

    let processors = 2
    func open(_ path: String) -> Int32 { change { $0.open(path) } }
    func close(_ device: Int32) { change { $0.close(device) } }
    func control(_ device: Int32, _ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 {
        let pause = change { request == fh_vidioc_dqbuf ? $0.dequeueMicroseconds : 0 }
        if pause > 0 { usleep(pause) }
        return change { $0.control(device, request, argument) }
    }
    func map(_ device: Int32, byteCount: Int, offset: Int) -> UnsafeMutableRawPointer? {
        change { $0.map(device, byteCount: byteCount, offset: offset) }
    }
    func unmap(_ base: UnsafeMutableRawPointer, byteCount: Int) { change { $0.unmap(base, byteCount: byteCount) } }
    func wait(_ device: Int32, milliseconds: Int32) -> Int32 {
        let events = change {
            $0.writeIntoWhatItHas()
            return $0.wait(device, milliseconds: milliseconds)
        }
        usleep(events == 0 ? UInt32(milliseconds) * 1000 : 2000)
        return events
    }
    func names(in folder: String) -> [String] { change { $0.names(in: folder) } }
    func realPath(_ path: String) -> String? { change { $0.realPath(path) } }
    func link(_ path: String) -> String? { change { $0.link(path) } }
    func text(of file: String) -> String? { change { $0.text(of: file) } }
    func group(of path: String) -> String? { change { $0.group(of: path) } }
}

/// Keeps the newest pictures, and looks at each of them again and again: nobody writes into what it holds.
private final class KeepingSink: Sink {
    static let info = StageInfo(
        id: "keeping-sink", summary: "Keeps frames.", input: .anyVideo, hold: 16, service: .unbounded,
        // A busy machine takes long for a look at all pictures.
        longestCall: MediaTime(seconds: 60))

    struct Options: StageOptions {
        @Option(help: "Frames that it keeps.", range: 0...16) var keep = 1
        @Option(help: "Frames that it says it keeps, less where it breaks its word.", range: 0...16) var declared = 1
        @Option(help: "Name under which its counts are found.") var log = ""
    }

    struct Count: Sendable {
        var frames = 0
        var changed = 0
    }

    private static let counts = Locked<[String: Count]>([:])
    static func count(_ name: String) -> Count { counts.withLock { $0[name] ?? Count() } }

    var options: Options
    private var kept = FrameRing(capacity: 16)
    private var firsts: [UInt8] = []

    init(options: Options, context: StageContext) { self.options = options }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.hold = options.declared
        return demand
    }

    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .frame(let frame) = consume input else { return .dropped(.byStage) }
        while kept.count >= max(options.keep, 1) {
            _ = kept.takeOldest()
            firsts.removeFirst()
        }
        firsts.append(Self.first(frame))
        kept.append(frame)
        var changed = 0
        for age in 0..<kept.count {
            let value = firsts[firsts.count - 1 - age]
            if kept.withFrame(age: age, { Self.isWhole($0, of: value) }) == false { changed += 1 }
        }
        Self.counts.withLock {
            $0[options.log, default: Count()].frames += 1
            $0[options.log, default: Count()].changed += changed
        }
        return .delivered
    }

    private static func first(_ frame: borrowing Frame) -> UInt8 { frame.withPlane(0) { $0.row(0)[0] } }

    /// Every sample of a picture of the scripted driver has one value.
    private static func isWhole(_ frame: borrowing Frame, of value: UInt8) -> Bool {
        frame.withPlane(0) { plane in (0..<plane.height).allSatisfy { plane.row($0).allSatisfy { $0 == value } } }
    }

    func stop() { kept.removeAll() }
}

/// A whole chain with a scripted camera, on its own threads.
@Suite struct V4L2ChainTests {
    private struct Sketch {
        var camera = ScriptedCamera()
        var options = #""size": "64x32", "rate": 25"#
        /// For each sink what it keeps and what it says.
        var sinks = [(keep: 1, declared: 1)]
    }

    private func request(_ sketch: Sketch, log: String) throws -> ChainRequest {
        func stage<S: Stage>(_ type: S.Type, _ id: String, _ options: String, from: [Int]) throws -> StageRequest {
            let members = try JSONReader.read(Array(options.utf8), file: "options").asObject ?? []
            return StageRequest(
                id: id, type: StageType(type), options: members, from: from,
                isUnread: sketch.sinks.isEmpty && from.isEmpty)
        }
        var stages = [try stage(V4L2Source.self, "cam", "{ \(sketch.options) }", from: [])]
        for (index, sink) in sketch.sinks.enumerated() {
            stages.append(
                try stage(
                    KeepingSink.self, "sink\(index)",
                    #"{ "keep": \#(sink.keep), "declared": \#(sink.declared), "log": "\#(log)-\#(index)" }"#, from: [0])
            )
        }
        return ChainRequest(file: "test.json", folder: ".", stages: stages)
    }

    /// Runs until `isOver` has asked it to stop, or fails the test after a minute.
    private func run(
        _ sketch: Sketch, log: String, _ isOver: (SharedCamera, [Event]) -> Bool
    ) throws -> (result: Chain.Result, events: [Event], camera: SharedCamera) {
        let camera = SharedCamera(sketch.camera)
        let chain = try DeviceCallsInUse.$current.withValue(camera) { try Chain(request(sketch, log: log)) }
        var events: [Event] = []
        let subscription = chain.subscribe()
        let deadline = ChainClock().now() + 60_000_000_000
        let result = chain.run {
            events += subscription.take().events
            guard chain.currentState == .streaming else { return }
            if isOver(camera, events) { return chain.cancel() }
            if ChainClock().now() > deadline {
                Issue.record("\(log): not reached: \(events.map(\.text))")
                chain.cancel()
            }
        }
        events += subscription.take().events
        // Its thread may still be at work.
        if !result.abandoned.isEmpty { _ = Unmanaged.passRetained(chain) }
        return (result, events, camera)
    }

    private func expectAllIsGivenBack(to camera: SharedCamera, log: String) {
        camera.change {
            #expect($0.opened == $0.closed, "\(log)")
            #expect($0.mapped == $0.unmapped, "\(log)")
        }
    }

    // MARK: Stop

    /// What a camera may be doing when the chain is stopped.
    enum State: String, CaseIterable, Sendable {
        case awaited, streaming, slow, stalled, lost, refused, starved
        case encoding, encodingAwaitsKeyframe, encodingLost
    }

    /// A thread that is not back 0.8 s after a stop is abandoned by name. A busy machine may keep any thread from its
    /// stop for so long, but not every time.
    @Test(arguments: State.allCases) func stopsWithinASecond(in state: State) throws {
        for attempt in 1...5 {
            let (result, _, camera) = try stop(in: state)
            let isClean = result.abandoned.isEmpty && (state == .starved || result.isSuccess)
            guard isClean || attempt == 5 else { continue }
            #expect(result.abandoned.isEmpty, "\(result)")
            if state != .starved { #expect(result.isSuccess, "\(result)") }
            expectAllIsGivenBack(to: camera, log: "stop-\(state.rawValue)")
            break
        }
    }

    private func stop(in state: State) throws -> (result: Chain.Result, events: [Event], camera: SharedCamera) {
        var sketch = Sketch()
        var ticks = 0
        let camera = sketch.camera
        /// Some looks, 50 ms apart, after that was so.
        func since(_ isSo: Bool, looks: Int = 4) -> Bool {
            ticks += isSo ? 1 : 0
            return ticks > looks
        }
        let isOver: (SharedCamera, [Event]) -> Bool
        switch state {
        case .awaited:
            camera.nodes = []
            sketch.options += #", "ifMissing": "wait""#
            isOver = { _, _ in since(true) }
        case .streaming: isOver = { shared, _ in shared.change { $0.sequence > 20 } }
        case .slow:
            camera.dequeueMicroseconds = 400_000
            isOver = { shared, _ in since(shared.change { $0.sequence > 0 }) }
        case .stalled:
            isOver = { shared, _ in
                since(
                    shared.change {
                        if $0.sequence > 5 { $0.isStalled = true }
                        return $0.isStalled
                    })
            }
        case .lost:
            isOver = { shared, events in
                shared.change { if $0.sequence > 5 { $0.isGone = ENODEV } }
                return events.contains { $0.name == "camera-lost" }
            }
        case .refused:
            isOver = { shared, events in
                shared.change {
                    if $0.sequence > 5, $0.faults[fh_vidioc_s_fmt] == nil {
                        $0.isGone = ENODEV
                        $0.faults[fh_vidioc_s_fmt] = Array(repeating: EBUSY, count: 1000)
                    } else if events.contains(where: { $0.name == "camera-lost" }) {
                        $0.isGone = nil
                    }
                }
                return events.contains { $0.name == "camera-refused" }
            }
        case .starved:
            sketch.sinks = [(keep: 16, declared: 0)]
            isOver = { shared, _ in since(shared.change { $0.isStreaming && $0.queued.isEmpty }, looks: 1) }
        case .encoding, .encodingAwaitsKeyframe, .encodingLost:
            camera.offers = [.init(code: "H264", sizes: [(64, 32)], intervals: [(1, 25)])]
            let sets: [UInt8] = [0, 0, 0, 1, 0x67, 66, 0, 30, 0x80, 0, 0, 0, 1, 0x68, 0xCE, 0x80]
            camera.compressedAt = { number in
                let isKeyframe = number % 10 == 0 && (state != .encodingAwaitsKeyframe || number < 10)
                return (isKeyframe ? sets + [0, 0, 1, 0x65, 0x88] : [0, 0, 1, 0x41, 0x88]) + [0x91]
            }
            sketch.options += #", "format": "h264""#
            sketch.sinks = []
            isOver = { shared, events in
                shared.change { if state == .encodingLost, $0.sequence > 15 { $0.isGone = ENODEV } }
                return state == .encodingLost
                    ? events.contains { $0.name == "camera-lost" } : shared.change { $0.sequence > 40 }
            }
        }
        return try run(sketch, log: "stop-\(state.rawValue)", isOver)
    }

    // MARK: Losses

    /// The address sanitizer runs it too (`make test-asan`): neither driver nor consumers touch what is no longer theirs.
    @Test(arguments: [true, false]) func isPulledWhileEveryConsumerHoldsItsMost(takesOurs: Bool) throws {
        var sketch = Sketch()
        sketch.camera.offers = [.init(code: "NV12", sizes: [(128, 32)], intervals: [(1, 25)])]
        sketch.camera.takesOurs = takesOurs
        sketch.options = #""size": "128x32", "rate": 25"#
        sketch.sinks = [(keep: 2, declared: 2), (keep: 3, declared: 3), (keep: 16, declared: 16)]
        let log = "pulled-\(takesOurs)"
        var (lost, back, picturesAtReturn) = (0, 0, UInt32(0))
        let (result, events, camera) = try run(sketch, log: log) { shared, events in
            lost = events.count { $0.name == "camera-lost" }
            back = events.count { $0.name == "camera-back" }
            let holds = KeepingSink.count("\(log)-2").frames > 16
            let hasSeenEnough = (0..<3).allSatisfy { KeepingSink.count("\(log)-\($0)").frames > 40 }
            return shared.change {
                if $0.isGone != nil {
                    if lost > back { $0.isGone = nil }
                    picturesAtReturn = $0.sequence
                } else if lost == back, holds, $0.sequence > picturesAtReturn + 20 {
                    if back == 5 { return hasSeenEnough }
                    $0.isGone = back % 2 == 0 ? ENODEV : EIO
                }
                return false
            }
        }
        expectAllIsGivenBack(to: camera, log: log)
        #expect(result.isSuccess, "\(result)")
        #expect(lost == 5 && back == 5, "\(events.map(\.name))")
        for index in 0..<3 {
            let count = KeepingSink.count("\(log)-\(index)")
            #expect(count.changed == 0 && count.frames > 40, "\(count)")
        }
    }
}
