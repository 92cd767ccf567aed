import FrameCore
import Foundation
import Testing

@testable import FileSource
@testable import Recorder
@testable import X264Encoder

@Suite(.serialized) struct FileChainTests {
    static let media = ProcessInfo.processInfo.environment["TRY_DIR"] ?? "/work/shared/media"
    static let clips = ((try? FileManager.default.contentsOfDirectory(atPath: media)) ?? []).filter { !$0.hasSuffix(".md") && !$0.hasSuffix(".json") }.sorted()

    @Test(arguments: clips) func roundTrip(clip: String) throws {
        let env = ProcessInfo.processInfo.environment
        print("=== \(clip)")
        do { try chain(Self.media + "/" + clip, "/tmp/fp/out-\(clip).\(env["TRY_EXT"] ?? "mp4")", encoder: env["TRY_X264"] ?? "{}", source: env["TRY_SOURCE"] ?? "") } catch { print("ERROR: \(error)") }
    }
}

func chain(_ path: String, _ out: String, encoder: String = "{}", source more: String = "") throws {
    let source = try StageDriver(FileSource.self, options: "{ \"path\": \"\(path)\" \(more) }")
    defer { for event in source.takeEvents() { print(event.name, event.text) } }
    print(source.outputFormat!, source.stage.demand.expectedItems as Any, source.stage.demand.expectedDuration?.seconds as Any)
    guard let format = source.outputFormat?.video, [.i420, .nv12].contains(format.pixelFormat), format.width % 2 == 0 else {
        let format = source.outputFormat!.video!
        var frames = 0
        while try source.produce() == .more { if source.takeFrame() != nil { frames += 1 } }
        print("decoded only", frames, format.pixelFormat, format.color)
        try source.stop()
        return
    }
    let x264 = try StageDriver(X264Encoder.self, options: encoder, input: source.outputFormat)
    let recorder = try StageDriver(Recorder.self, options: "{ \"path\": \"\(out)\", \"overwrite\": true }", input: x264.outputFormat)
    print(x264.outputFormat!, x264.stage.demand.delay)
    var frames = 0
    var failure: (any Error)?
    do {
      while try source.produce() == .more {
        if let frame = source.takeFrame() {
            frames += 1
            try x264.send(frame)
            while let unit = x264.takeAccessUnit() { try recorder.send(unit) }
        }
      }
    } catch { failure = error }
    try source.stop()
    try x264.drain()
    while let unit = x264.takeAccessUnit() { try recorder.send(unit) }
    print("held", x264.stage.held, "kept", x264.keptBuffers, source.keptBuffers)
    try x264.stop()
    try recorder.drain()
    try recorder.stop()
    for event in x264.takeEvents() + recorder.takeEvents() { print(event.name, event.text) }
    print(frames)
    if let failure { throw failure }
}
