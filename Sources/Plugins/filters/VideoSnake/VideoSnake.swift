// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Shared

/// Shows the picture small in the middle, in front of the picture that it gave last, which is drawn a little smaller
/// and moved by how the camera is pushed: pictures of the past trail behind like a snake.
///
/// After the effect of Apple's sample VideoSnake. docs/design/035-motion.md.
final class VideoSnake: Filter {
    static let info = StageInfo(
        id: "video-snake", summary: "Trails earlier pictures behind the newest; a push of the camera bends the trail.",
        input: .video(.i420), output: .sameAsInput, access: .modify)

    var options: VideoSnakeOptions
    private let context: StageContext
    private var format: VideoFormat?
    private var slot: MetadataSlot<Motion>?
    private var motion = SnakeMotion()
    private var black: Paint?
    /// The newest picture, small; and the picture given last, shrunk.
    private var head: SnakePicture?
    private var tail: SnakePicture?
    private var hasTail = false

    /// [control thread] Opens nothing.
    init(options: VideoSnakeOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// Two small pictures of its own.
    var demand: StageDemand {
        var demand = Self.declaredDemand
        if let format {
            demand.ownBytes = 2 * SnakePicture.byteCount(width: format.width, height: format.height)
            demand.cost = format.cost(nanosecondsPerPixel: 1)
            // After so many pictures one is smaller than a pixel.
            let pictures = log(Double(max(format.width, format.height))) / -log(min(options.shrink, 0.999))
            demand.warmUp = WarmUp(frames: Int(min(max(pictures.rounded(.up), 1), 10_000)))
        }
        return demand
    }

    /// [control thread]
    ///
    /// - Throws: ``FrameHostError`` for a picture that is too small.
    func negotiate(_ format: VideoFormat) throws {
        guard format.width >= 64, format.height >= 64 else {
            throw FrameHostError(
                .invalidConfiguration, what: "video-snake needs pictures of 64x64 or more, but gets \(format)",
                remedy: "Put a 'crop-orient' with a larger \"size\" before this stage.")
        }
        self.format = format
    }

    /// [control thread] Takes memory for the small pictures.
    func start() {
        slot = context.slot(for: Motion.self)
        guard let format else { return }
        black = Paint(RGBColor(red: 0, green: 0, blue: 0), for: format)
        makePictures()
    }

    private func makePictures() {
        guard let format else { return }
        func part(_ size: Int, _ of: Double) -> Int { max(Int(Double(size) * of / 2) * 2, 8) }
        head = SnakePicture(width: part(format.width, options.head), height: part(format.height, options.head))
        tail = SnakePicture(width: part(format.width, options.shrink), height: part(format.height, options.shrink))
        hasTail = false
    }

    /// [stage thread] Takes effect with the next picture, which has no tail where a size has changed.
    func optionsChanged() { makePictures() }

    /// [stage thread] Allocates nothing.
    func process(_ frame: inout Frame) -> Verdict {
        guard let head, let tail, let black else { return .forward }
        motion.advance(slot.flatMap { frame[$0] })
        let (width, height) = (frame.format.width / 2 * 2, frame.format.height / 2 * 2)
        let shift = motion.shift(width: width, height: height, bend: options.bend)
        frame.withMutablePicture { whole in
            head.shrink(whole, edge: black)
            whole.fill(x: 0, y: 0, width: whole.width, height: whole.height, black)
            let target = whole.part(x: 0, y: 0, width: width, height: height)
            if hasTail {
                tail.draw(
                    into: target, x: (width - tail.picture.width) / 4 * 2 + shift.x,
                    y: (height - tail.picture.height) / 4 * 2 + shift.y)
            }
            head.draw(
                into: target, x: (width - head.picture.width) / 4 * 2, y: (height - head.picture.height) / 4 * 2)
            tail.shrink(whole, edge: black)
        }
        hasTail = true
        return .forward
    }
}
