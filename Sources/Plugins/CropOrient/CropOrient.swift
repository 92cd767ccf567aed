import FrameCore

/// Cuts, turns, mirrors and scales pictures, in this order.
///
/// A picture that lies on its side or mirrored (``VideoFormat/orientation``) is brought upright first: `crop` speaks of the picture as it
/// is shown, and what comes out is upright. Time, sequence number and metadata stay.
final class CropOrient: Transform {
    static let info = StageInfo(
        id: "crop-orient", summary: "Cuts, turns, mirrors and scales pictures.", input: .video(.i420, .nv12, .bgra),
        output: .video(.i420, .nv12, .bgra))

    var options: CropOrientOptions
    private let context: StageContext
    private var input: VideoFormat?
    private var output: VideoFormat?
    private var geometry: Geometry?
    private var orienter: PictureOrienter?

    /// [control thread] Opens nothing.
    init(options: CropOrientOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    private var isIdentity: Bool {
        guard let input, let geometry else { return false }
        return geometry.isIdentity(of: input)
    }

    /// With nothing to do, frames go on as they came.
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.outputBuffers = isIdentity ? .sameAsInput : .own
        return demand
    }

    /// [control thread]
    ///
    /// - Throws: ``FrameHostError`` `.invalidConfiguration` when `crop` reaches outside the picture.
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        guard var video = input.video else { throw FrameHostError(.broken, what: "crop-orient was handed access units") }
        self.input = video
        let geometry = try Geometry(options, of: video)
        self.geometry = geometry
        video.width = geometry.output.width
        video.height = geometry.output.height
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
                "\(context.stageID): the part begins at \(geometry.source.x),\(geometry.source.y) of the stored picture, up to one pixel"
                    + " further left or up than asked: in \(input.pixelFormat.rawValue) two pixels share a colour.")
        }
    }

    /// [stage thread] One frame in, one out. Waits for a free buffer alone; allocates nothing (libyuv does, see
    /// ``PlaneKernels/scale(_:into:)``).
    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input else {
            throw FrameHostError(.broken, what: "crop-orient was handed access units")
        }
        guard let orienter else { return try output.emit(frame) }
        guard var turned = try output.makeFrame() else { return }
        frame.withPicture { source in turned.withMutablePicture { orienter.orient(source, into: $0) } }
        turned.copyProperties(from: frame)
        turned.orientation = .up
        try output.emit(turned)
    }

    /// [stage thread]
    func stop() { orienter = nil }
}
