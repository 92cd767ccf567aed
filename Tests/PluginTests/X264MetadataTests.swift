// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import TestSource
@testable import X264Encoder

/// Finds one face in each picture, which has the picture's number.
private final class Finder: Filter {
    static let info = StageInfo(
        id: "finder", summary: "Finds a face.", input: .anyVideo, output: .sameAsInput, metadata: [Faces.self])
    typealias Options = NoOptions
    var options: NoOptions
    private let context: StageContext
    private var slot: MetadataSlot<Faces>?

    init(options: NoOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    func start() { slot = context.slot(for: Faces.self) }

    func process(_ frame: inout Frame) throws -> Verdict {
        var faces = Faces(pictureWidth: frame.format.width, pictureHeight: frame.format.height)
        var face = Faces.Face()
        face.id = UInt32(frame.sequenceNumber)
        faces.append(face)
        if let slot { frame[slot] = faces }
        frame.orientation = frame.sequenceNumber % 4 == 0 ? .down : .up
        frame.isDiscontinuity = frame.sequenceNumber % 7 == 0
        return .forward
    }
}

/// Stands where a recorder or an RTSP sink would: reads the faces of access units.
private final class FaceReader: Sink {
    static let info = StageInfo(
        id: "face-reader", summary: "Reads faces.", input: .encoded(.h264), service: .unbounded,
        metadata: [Faces.self])

    struct Entry: Sendable {
        var number: UInt64, face: UInt32?
        var pts: MediaTime, dts: MediaTime
        var orientation: Orientation
        var isDiscontinuity: Bool
    }

    struct Options: StageOptions {
        @Option(help: "Name under which the log is found.") var log = ""
    }

    private static let logs = Locked<[String: [Entry]]>([:])
    static func log(_ name: String) -> [Entry] { logs.withLock { $0[name] ?? [] } }

    var options: Options
    private let context: StageContext
    private var slot: MetadataSlot<Faces>?

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    func start() { slot = context.slot(for: Faces.self) }

    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .accessUnit(let unit) = consume input else { return .dropped(.byStage) }
        let entry = Entry(
            number: unit.sequenceNumber, face: slot.flatMap { unit[$0]?.first?.id }, pts: unit.pts, dts: unit.dts,
            orientation: unit.orientation, isDiscontinuity: unit.isDiscontinuity)
        Self.logs.withLock { $0[options.log, default: []].append(entry) }
        return .delivered
    }
}

/// From the frame to the access unit of the same picture, through x264 in a running chain.
@Suite struct X264MetadataTests {
    private func request(_ log: String, encoder: String) throws -> ChainRequest {
        func stage<S: Stage>(_ type: S.Type, _ id: String, _ options: String = "{}", from: [Int]) throws -> StageRequest
        {
            let members = try JSONReader.read(Array(options.utf8), file: "options").asObject ?? []
            return StageRequest(id: id, type: StageType(type), options: members, from: from)
        }
        return ChainRequest(
            file: "test.json", folder: ".",
            stages: [
                try stage(TestSource.self, "src", #"{ "size": "320x240", "rate": 30, "frames": 120 }"#, from: []),
                try stage(Finder.self, "finder", from: [0]),
                try stage(X264Encoder.self, "h264", encoder, from: [1]),
                try stage(FaceReader.self, "file", #"{ "log": "\#(log)" }"#, from: [2]),
                try stage(FaceReader.self, "net", #"{ "log": "\#(log)-net" }"#, from: [2]),
            ])
    }

    @Test(arguments: [(0, "zerolatency"), (3, "none"), (5, "film")])
    func carriesFacesToTheUnitOfTheSamePicture(bframes: Int, tune: String) throws {
        let log = "faces-\(bframes)"
        let options = #"{ "bframes": \#(bframes), "tune": "\#(tune)", "threads": 2, "preset": "veryfast" }"#
        let result = try Chain(request(log, encoder: options)).run()
        #expect(result.isSuccess, "\(result)")
        for units in [FaceReader.log(log), FaceReader.log("\(log)-net")] {
            #expect(units.count == 120)
            #expect(Set(units.map(\.number)).count == 120)
            #expect(units.allSatisfy { $0.face == UInt32($0.number) })
            #expect(units.allSatisfy { $0.orientation == ($0.number % 4 == 0 ? .down : .up) })
            #expect(units.allSatisfy { $0.isDiscontinuity == ($0.number % 7 == 0) })
            let isInOrder = zip(units, units.dropFirst()).allSatisfy { $0.pts < $1.pts }
            #expect(isInOrder == (bframes == 0), "x264 reorders")
        }
    }
}
