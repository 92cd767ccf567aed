// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Cuts, turns, mirrors and scales pictures, in this order.
///
/// A picture that lies on its side or mirrored (``Frame/orientation``) is brought upright first: `crop` refers to the
/// picture as it is shown, and the output is upright. A frame with another orientation than its link's is brought
/// upright too, and fitted to the link's size by `fit`. Time, sequence number and metadata stay.
final class CropOrient: Transform {
    static let info = StageInfo(
        id: "crop-orient", summary: "Crops, rotates, mirrors and scales pictures.", input: .video(.i420, .nv12, .bgra),
        output: .video(.i420, .nv12, .bgra))

    var options: CropOrientOptions
    private let context: StageContext
    private var input: VideoFormat?
    private var output: VideoFormat?
    private var geometry: Geometry?
    private var orienter: PictureOrienter?
    /// For frames with another orientation than their link's, by ``Orientation/rawValue``. Each is made when first
    /// needed.
    private var others: [PictureOrienter?] = Array(repeating: nil, count: Orientation.allCases.count + 1)
    private var hasWarned = false

    /// [control thread] Opens nothing.
    init(options: CropOrientOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    private var isIdentity: Bool {
        guard let input, let geometry, !options.anyOrientation else { return false }
        return geometry.isIdentity(of: input)
    }

    /// With nothing to do, frames are passed on unchanged, unless some may lie otherwise.
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.outputBuffers = isIdentity ? .sameAsInput : .own
        if let output, !isIdentity { demand.cost = output.cost(nanosecondsPerPixel: 0.5) }
        return demand
    }

    /// [control thread]
    ///
    /// - Throws: ``FrameHostError`` `.invalidConfiguration` when `crop` reaches outside the picture.
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        guard var video = input.video else {
            throw FrameHostError(.broken, what: "crop-orient was handed access units")
        }
        self.input = video
        let geometry = try Geometry(options, of: video)
        self.geometry = geometry
        video = video.resized(to: geometry.output)
        video.orientation = .up
        video.sampleAspectRatio = geometry.sampleAspectRatio
        output = video
        return .video(video)
    }

    /// [control thread] Makes the scratch memory.
    func start() {
        guard let input, let output, let geometry, !isIdentity else { return }
        orienter = PictureOrienter(geometry, from: input, to: output, bars: options.color)
        if geometry.isMoved {
            context.log(
                "\(context.stageID): The part that is kept starts at \(geometry.source.x),\(geometry.source.y) of the picture as it comes in, up to one pixel further left and up than the options say, because in \(input.pixelFormat.rawValue) neighbouring pixels share one chroma sample."
            )
        }
    }

    /// [stage thread] One frame in, one out. Only waits for a free buffer. Allocates only for the first frame of
    /// another orientation.
    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input else {
            throw FrameHostError(.broken, what: "crop-orient was handed access units")
        }
        guard let usual = orienter else {
            // What is left to do: nothing, unless the frame has another orientation than its link's.
            let left = frame.orientation.then(options.rotate.orientation).then(options.mirror ? .upMirrored : .up)
            if left != .up { warn(of: frame) }
            frame.orientation = left
            return try output.emit(frame)
        }
        let orienter = frame.orientation == self.input?.orientation ? usual : try other(for: frame)
        guard var turned = try output.makeFrame() else { return }
        frame.withPicture { source in turned.withMutablePicture { orienter.orient(source, into: $0) } }
        turned.copyProperties(from: frame)
        turned.orientation = .up
        try output.emit(turned)
    }

    /// The orienter for a frame with another orientation than its link's.
    private func other(for frame: borrowing Frame) throws -> PictureOrienter {
        let lying = frame.orientation
        if let known = others[Int(lying.rawValue)] { return known }
        guard let input, let output else { throw FrameHostError(.broken, what: "crop-orient runs without a format") }
        let orienter = PictureOrienter(
            try Geometry(options, of: input, lying: lying, into: output), from: input, to: output, bars: options.color)
        others[Int(lying.rawValue)] = orienter
        context.log(
            "\(context.stageID): Frame \(frame.sequenceNumber) is stored \(lying), but the stage before declared its frames as \(input.orientation). Such frames are also turned upright, and fitted to \(output.width)x\(output.height) with \"fit\": \"\(options.fit.rawValue)\"."
        )
        return orienter
    }

    /// Warns of a frame that would have to be turned, where the stage has nothing to do and so has no buffers of its
    /// own.
    private func warn(of frame: borrowing Frame) {
        guard !hasWarned, let input else { return }
        hasWarned = true
        context.log(
            "\(context.stageID): Frame \(frame.sequenceNumber) is stored \(frame.orientation), but the stage before declared its frames as \(input.orientation). Such frames pass without being turned, because this stage has nothing else to do and so has no buffers. To have them turned, set \"anyOrientation\": true.",
            level: .warning)
    }

    /// [stage thread]
    func stop() {
        orienter = nil
        for index in others.indices { others[index] = nil }
    }
}
