// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import FrameCore

/// Finds one face in each frame, whose left edge is the frame's number and 100.
private final class FaceFinding: Filter {
    static let info = StageInfo(
        id: "face-finding", summary: "Finds.", input: .anyVideo, output: .sameAsInput, metadata: [Faces.self])
    struct Options: StageOptions {}
    var options: Options
    private let context: StageContext
    private var slot: MetadataSlot<Faces>?

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    func start() { slot = context.slot(for: Faces.self) }

    func process(_ frame: inout Frame) -> Verdict {
        guard let slot else { return .forward }
        var faces = Faces(pictureWidth: frame.format.width, pictureHeight: frame.format.height)
        var face = Faces.Face()
        face.id = 7
        face.x = Float(frame.sequenceNumber) + 100
        faces.append(face)
        frame[slot] = faces
        return .forward
    }
}

/// What a user's filter does: it names no plugin, and reads what the frame brings along. It fills the picture with the
/// sum of all left edges.
private final class FaceReading: Filter {
    static let info = StageInfo(
        id: "face-reading", summary: "Reads.", input: .video(.gray8), output: .sameAsInput, access: .modify)
    struct Options: StageOptions {}
    var options: Options
    private let context: StageContext
    private var slot: MetadataSlot<Faces>?

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    func start() { slot = context.slot(for: Faces.self) }

    func process(_ frame: inout Frame) -> Verdict {
        let faces = slot.flatMap { frame[$0] }
        let value = faces.map { $0.reduce(0) { $0 + Int($1.x) } } ?? 255
        frame.withMutablePlane(0) { plane in
            for y in 0..<plane.height { plane.row(y).update(repeating: UInt8(truncatingIfNeeded: value)) }
        }
        return .forward
    }
}

@Suite struct FacesTests {
    private static func faces(_ count: Int) -> Faces {
        var faces = Faces(pictureWidth: 640, pictureHeight: 360)
        for number in 0..<count {
            var face = Faces.Face()
            face.id = UInt32(number)
            face.width = Float(number) / 2
            face.confidence = 0.25
            face.hasLandmarks = number % 2 == 1
            if face.hasLandmarks { for index in face.landmarks.indices { face.landmarks[index] = Float(index) - 3.5 } }
            faces.append(face)
        }
        return faces
    }

    @Test func isACollectionOfAtMostSixtyFour() {
        #expect(Self.faces(0).isEmpty)
        #expect(Self.faces(3).map(\.id) == [0, 1, 2])
        #expect(Self.faces(3).max { $0.width < $1.width }?.id == 2)
        #expect(Self.faces(70).count == Faces.most)
    }

    @Test func comesBackFromItsCodedFormAsItWas() throws {
        let faces = Self.faces(5)
        let copy = try JSONDecoder().decode(Faces.self, from: JSONEncoder().encode(faces))
        #expect(copy == faces)
        #expect(copy != Self.faces(4))
        #expect(copy[1].landmarks[9] == 5.5 && !copy[2].hasLandmarks)
    }

    @Test func travelsToAFilterThatKnowsNothingOfTheOneThatFoundThem() throws {
        for isFound in [true, false] {
            var sketch = ChainSketch()
            try sketch.add(CountingSource.self, "src", options: #"{"count": 5}"#)
            if isFound { try sketch.add(FaceFinding.self, "finder") }
            try sketch.add(FaceReading.self, "reader", link: LinkRequest(queue: 2))
            try sketch.add(RecordingSink.self, "sink", options: #"{"log": "faces-\#(isFound)"}"#)
            let (result, _) = ChainTests.run(try Chain(sketch.request))
            #expect(result.isSuccess, "\(result)")
            let wanted: [UInt8] = isFound ? [100, 101, 102, 103, 104] : [255, 255, 255, 255, 255]
            #expect(RecordingSink.log("faces-\(isFound)").entries.map(\.pixel) == wanted)
        }
    }
}
