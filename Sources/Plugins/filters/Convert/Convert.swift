// SPDX-License-Identifier: Apache-2.0

import Conversion
import FrameCore
import Shared

/// What becomes of HLG and PQ in 8 bits.
enum ToneMapping: String, OptionChoice {
    /// John Hable's curve.
    case hable
    /// They are refused.
    case off
}

struct ConvertOptions: StageOptions {
    @Option(help: "The pixel format to convert to.") var format = PixelFormat.i420

    @Option(help: "How HLG and PQ become 8 bits for ordinary screens: hable by John Hable's curve, off refuses them.")
    var toneMap = ToneMapping.hable

    func validate() throws(OptionFault) {
        guard format.bitDepth == 8 else {
            throw OptionFault(
                "'format' cannot be \(format.rawValue): this stage can only read it",
                remedy: "Use i420, nv12, yuyv, bgra, rgb24 or gray8.", options: ["format"])
        }
    }
}

/// Converts between pixel formats. The planner inserts it where two formats do not match.
///
/// Size, time, orientation and metadata stay. Range and matrix are respected: between formats of luma and chroma they
/// do not change. RGB gets full range. Luma and chroma from RGB get video range, with BT.709 from 720 rows on and
/// BT.601 for fewer.
final class Convert: Transform {
    static let info = StageInfo(
        id: "convert", summary: "Converts between pixel formats.", input: .anyVideo,
        output: .video(.i420, .nv12, .yuyv, .bgra, .rgb24, .gray8), isConverter: true)

    var options: ConvertOptions
    private let context: StageContext
    private var input: VideoFormat?
    private var output: VideoFormat?
    private var converter: PictureConverter?

    /// [control thread] Opens nothing.
    init(options: ConvertOptions, context: StageContext) { (self.options, self.context) = (options, context) }

    private var isIdentity: Bool { input?.pixelFormat == options.format }

    /// Where the format is right already, frames are passed on unchanged.
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.outputBuffers = isIdentity ? .sameAsInput : .own
        if let output, !isIdentity { demand.cost = output.cost(nanosecondsPerPixel: 1) }
        return demand
    }

    /// [control thread]
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        guard let video = input.video else { throw FrameHostError(.broken, what: "convert was handed access units") }
        self.input = video
        if video.pixelFormat.bitDepth > 8, options.format.bitDepth == 8, let name = ToneMap.name(video.color.transfer) {
            guard options.toneMap == .hable else {
                throw FrameHostError(
                    .invalidConfiguration, place: "toneMap",
                    what: "the pictures are \(name) in 10 bits, and \"toneMap\": \"off\" makes no 8 bits of them",
                    remedy: "Leave 'toneMap' out, or use stages that take i010 or p010.")
            }
            context.note("the pictures are \(name) in 10 bits and are tone-mapped to 8 bits for ordinary screens")
        }
        output = Self.converted(video, to: options.format)
        return .video(output!)
    }

    /// `format` in another pixel format, with the colour that the conversion makes.
    static func converted(_ format: VideoFormat, to target: PixelFormat) -> VideoFormat {
        guard format.pixelFormat != target else { return format }
        var result = format
        result.pixelFormat = target
        // 8 bits that said HLG or PQ would be shown too dark and grey.
        if format.pixelFormat.bitDepth > 8, target.bitDepth == 8, ToneMap.name(format.color.transfer) != nil {
            result.color.transfer = ToneMap.transferOfResult
        }
        if target.isRGB {
            result.color.range = .full
            result.color.matrix = 0
            result.color.chromaSiting = 0
        } else if format.pixelFormat.isRGB {
            result.color.range = .video
            result.color.matrix = ColorDescription().assumedMatrix(height: format.height)
            // A chroma sample is the mean of its pixels, so it lies in their middle.
            result.color.chromaSiting = target == .i420 || target == .nv12 ? 2 : 0
        } else if target == .gray8 {
            result.color.chromaSiting = 0
        }
        return result
    }

    /// [control thread] Makes the scratch rows.
    func start() {
        guard let input, let output, !isIdentity else { return }
        converter = PictureConverter(from: input, to: output)
    }

    /// [stage thread] One frame in, one out. Only waits for a free buffer; allocates nothing.
    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input else {
            throw FrameHostError(.broken, what: "convert was handed access units")
        }
        guard let converter else { return try output.emit(frame) }
        guard var converted = try output.makeFrame() else { return }
        frame.withPicture { source in converted.withMutablePicture { converter.convert(source, into: $0) } }
        converted.copyProperties(from: frame)
        try output.emit(converted)
    }

    /// [stage thread]
    func stop() { converter = nil }
}
