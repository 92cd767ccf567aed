// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation

@testable import FaceEffect

/// What a test puts in the detector's place.
final class FakeDetector: FaceDetecting, @unchecked Sendable {
    let input = DetectorInput.gray
    let isDependable = true
    /// [detector thread] From the number of the call and the picture's sides.
    private let answer: @Sendable (_ call: Int, _ width: Int, _ height: Int) throws -> [Detection]
    private(set) var calls = 0

    init(_ answer: @escaping @Sendable (_ call: Int, _ width: Int, _ height: Int) throws -> [Detection]) {
        self.answer = answer
    }

    func detect(_ picture: DetectorPicture, into buffer: UnsafeMutableBufferPointer<Detection>) throws -> Int {
        defer { calls += 1 }
        let faces = try answer(calls, picture.width, picture.height)
        for (index, face) in faces.prefix(buffer.count).enumerated() { buffer[index] = face }
        return min(faces.count, buffer.count)
    }
}

/// face-effect with a detector of the test's, for ``StageDriver``, which makes its stage from options alone.
final class HarnessedFaceEffect: DelayingFilter {
    @TaskLocal static var detector: FakeDetector?
    static let info = FaceEffect.info

    let stage: FaceEffect
    var options: FaceEffectOptions {
        get { stage.options }
        set { stage.options = newValue }
    }

    init(options: FaceEffectOptions, context: StageContext) {
        stage = FaceEffect(
            options: options, context: context, detector: Self.detector, folders: DataFolders(folders: []))
    }

    var demand: StageDemand { stage.demand }
    func negotiate(_ format: VideoFormat) throws { try stage.negotiate(format) }
    func start() throws { try stage.start() }
    func optionsChanged() throws { try stage.optionsChanged() }
    func process(_ frame: inout Frame) throws -> Verdict { try stage.process(&frame) }
    func process(_ frame: consuming Frame, _ output: Output) throws { try stage.process(frame, output) }
    func drain(_ output: Output) throws { try stage.drain(output) }
    var held: Int { stage.held }
    func stop() throws { try stage.stop() }

    /// Without a live chain it waits for the detector longer than any machine needs: a wait ends with the answer.
    ///
    /// - Parameter options: Begin with the brace.
    static func driver(
        _ options: String, _ format: VideoFormat, isLive: Bool = false, _ detector: FakeDetector
    ) throws -> StageDriver<HarnessedFaceEffect> {
        var options = options
        if !isLive, !options.contains("\"waitMs\""), !options.contains("\"latency\"") {
            options = #"{ "waitMs": 60000"# + (options.contains(":") ? "," : "") + String(options.dropFirst())
        }
        return try $detector.withValue(detector) {
            try StageDriver(HarnessedFaceEffect.self, options: options, input: .video(format), isLive: isLive)
        }
    }
}

extension Detection {
    static func at(_ x: Double, _ y: Double, _ width: Double, _ height: Double, confidence: Double = 0.95) -> Detection
    {
        Detection(box: FaceRect(x: x, y: y, width: width, height: height), confidence: confidence, landmarks: nil)
    }
}

/// Noise that is the same in each run (SplitMix64).
struct Noise {
    private var state: UInt64
    init(_ seed: UInt64) { state = seed }

    mutating func byte() -> UInt8 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return UInt8(truncatingIfNeeded: z >> 33)
    }

    /// Fills all planes with samples of 40...215.
    mutating func fill(_ frame: inout Frame) {
        for plane in 0..<frame.planeCount {
            frame.withMutablePlane(plane) { plane in
                for y in 0..<plane.height {
                    let row = plane.row(y)
                    for x in 0..<plane.rowBytes { row[x] = 40 + byte() % 176 }
                }
            }
        }
    }
}

/// One frame of noise with faces in it through the stage.
enum EffectRun {
    /// Sends two frames (a face counts from the second on) and gives the second before and after.
    static func frames(_ options: String, _ format: VideoFormat, faces: [Detection]) throws -> (
        before: [[UInt8]], after: [[UInt8]]
    ) {
        // In pixels of the small copy, which is as large as these pictures.
        let driver = try HarnessedFaceEffect.driver(options, format, FakeDetector { _, _, _ in faces })
        var before: [[UInt8]] = []
        var after: [[UInt8]] = []
        for _ in 0..<2 {
            var noise = Noise(11)
            let frame = try driver.makeFrame { noise.fill(&$0) }
            before = frame.planeBytes
            try driver.send(frame)
            after = try driver.nextFrame().planeBytes
        }
        try driver.stop()
        return (before, after)
    }

    /// The mask's definition, for a sample whose middle is at (x, y).
    static func alpha(_ x: Double, _ y: Double, _ box: FaceRect, margin: Double, feather: Double) -> Double {
        let u = (x - box.centerX) / (box.width / 2 * (1 + margin))
        let v = (y - box.centerY) / (box.height / 2 * (1 + margin))
        let r = pow(pow(u, 4) + pow(v, 4), 0.25)
        return feather == 0 ? (r < 1 ? 1 : 0) : min(max((1 - r) / feather, 0), 1)
    }
}
