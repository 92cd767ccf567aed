// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Puts copies of the picture into one, each with a place, a delay and colours of its own.
///
/// One picture comes out for each that comes in, with its time. A delayed copy shows the first picture until its own
/// has come.
final class Replicate: Transform {
    static let info = StageInfo(
        id: "replicate", summary: "Shows many copies of the picture, each with its own place, delay and colours.",
        input: .video(.i420, .nv12), output: .video(.i420, .nv12), hold: ReplicateOptions.mostDelay)

    var options: ReplicateOptions
    private let context: StageContext
    private var input: VideoFormat?
    private var output: VideoFormat?
    private var copies: [CopyPlan] = []
    private var background: Paint?
    private var history = FrameRing(capacity: 0)
    private var levels: PictureLevels?
    private var painter: CopyPainter?
    /// How many frames are held. A live change cannot use more.
    private let mostDelay: Int

    /// [control thread] Opens nothing.
    init(options: ReplicateOptions, context: StageContext) {
        self.options = options
        self.context = context
        mostDelay = options.mostDelay
    }

    /// Holds as many frames as the longest delay of a copy.
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.hold = mostDelay
        if let output { demand.cost = output.cost(nanosecondsPerPixel: 2) }
        return demand
    }

    /// [control thread]
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        guard let video = input.video else { throw FrameHostError(.broken, what: "replicate was handed access units") }
        let result = options.size.map(video.resized) ?? video
        self.input = video
        output = result
        return .video(result)
    }

    /// [control thread] Makes room for the kept frames.
    func start() {
        guard let input, let output else { return }
        history = FrameRing(capacity: mostDelay)
        painter = CopyPainter(from: input, to: output)
        plan()
    }

    private func plan() {
        guard let input, let output else { return }
        copies = CopyPlan.all(options, from: input, to: output).filter(\.isVisible)
        background = Paint(options.background, for: output)
        let used = Set(copies.map(\.level))
        if levels == nil || !used.isSubset(of: 0...levels!.depth) {
            let levels = PictureLevels(input, depth: used.max() ?? 0, capacity: mostDelay + 1)
            for age in (0..<history.count).reversed() { history.withFrame(age: age) { $0.withPicture(levels.add) } }
            self.levels = levels
        }
    }

    /// [stage thread] One frame in, one out. Only waits for a free buffer; allocates nothing.
    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input, let painter, let levels, let background else {
            throw FrameHostError(.broken, what: "replicate was handed access units")
        }
        guard var result = try output.makeFrame() else { return }
        frame.withPicture { newest in
            levels.add(newest)
            result.withMutablePicture { target in
                target.fill(x: 0, y: 0, width: target.width, height: target.height, background)
                for copy in copies {
                    // Frames that have come before this one.
                    let age = min(copy.delay, history.count)
                    if copy.level > 0 {
                        painter.add(copy, levels.picture(age: min(copy.delay, levels.count - 1), level: copy.level))
                    } else if age == 0 {
                        painter.add(copy, newest)
                    } else {
                        // The history holds the frame until this one is added to it, after the painting.
                        history.withFrame(age: age - 1) { $0.withPicture { painter.add(copy, $0) } }
                    }
                }
                painter.paint(into: target)
            }
        }
        result.copyProperties(from: frame)
        history.append(frame)
        try output.emit(result)
    }

    /// [stage thread] Takes effect with the next frame.
    ///
    /// - Throws: ``FrameHostError`` when more frames would have to be held than the plan has room for.
    func optionsChanged() throws {
        guard options.mostDelay <= mostDelay else {
            func frames(_ count: Int) -> String { count == 1 ? "1 frame" : "\(count) frames" }
            throw FrameHostError(
                .invalidConfiguration,
                what:
                    "a copy would be \(frames(options.mostDelay)) late, but the longest delay at the start was \(frames(mostDelay)), and a running chain cannot exceed it",
                remedy:
                    "Lower 'delay' in 'first', 'step' or 'each', or set the longer delay in the chain file and restart the chain.",
                option: "first"
            )
        }
        plan()
    }

    /// [stage thread] Releases all frames.
    func stop() {
        history.removeAll()
        levels = nil
        painter = nil
    }
}
