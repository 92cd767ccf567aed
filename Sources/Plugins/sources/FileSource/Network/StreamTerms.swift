// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import CodedVideo
import FrameCore

/// What a connection has found out about its video, before the first packet is decoded. Immutable once made; handed
/// from the reader's thread to the stage's, hence `@unchecked Sendable`.
final class StreamTerms: @unchecked Sendable {
    let parameters: UnsafeMutablePointer<AVCodecParameters>
    let timeBase: TimeBase
    let shape: PictureShape
    let conversion: PixelConversion
    let orientation: Orientation
    /// The nominal frame rate; zero where the stream has none.
    let rate: Rational
    /// Parameter sets with start codes; empty where there are none, or where they were not asked for.
    let parameterSets: [UInt8]
    /// Why access units cannot be given beside the pictures; nil where they can, or were not asked for.
    let unitsFault: FrameHostError?
    let reorderDepth: Int
    /// What its access units are made of; nil where they cannot be passed on.
    var coding: UnitCoding? { UnitCoding(parameters.pointee.codec_id) }
    /// Nil where it was not asked for, or where there is none that can be given.
    let sound: SoundTerms?
    /// Whether there is sound that was not asked for.
    let leavesSound: Bool
    /// `h264 1280x720 at 25 fps`.
    let text: String
    /// Whether it has no times: those that libavformat makes up for it say nothing of when a picture was taken.
    let isUntimed: Bool

    /// From picture to picture: by the stream, else by `planned`.
    func period(_ planned: VideoFormat?) -> MediaTime {
        rate.isZero ? planned?.frameRate.period ?? .zero : rate.period
    }

    /// - Throws: ``FrameHostError`` where the video cannot be given.
    ///
    /// - Parameters:
    ///   - sound: The track of the sound, where it is wanted and there is one.
    ///   - leavesSound: Whether there is sound that is not wanted.
    ///   - givesUnits: Whether access units are wanted beside the pictures.
    init(
        _ container: UnsafeMutablePointer<AVFormatContext>, track: Int, sound: Int? = nil, leavesSound: Bool = false,
        shown: String, isDecoded: Bool, givesUnits: Bool, isUntimed: Bool = false
    ) throws {
        (self.leavesSound, self.isUntimed) = (leavesSound, isUntimed)
        let stream = container.pointee.streams[track]!
        self.sound = sound.flatMap { SoundTerms(container.pointee.streams[$0]!) }
        guard let copy = avcodec_parameters_alloc() else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a stream",
                remedy: "Free some memory.")
        }
        parameters = copy
        let base = stream.pointee.time_base
        timeBase = base.num > 0 && base.den > 0 ? TimeBase(base.num, base.den) : TimeBase(1, AV_TIME_BASE)
        let guessed = av_guess_sample_aspect_ratio(container, stream, nil)
        let aspect = guessed.num > 0 && guessed.den > 0 ? Rational(guessed.num, guessed.den) : Rational(0)
        shape = PictureShape(
            stream.pointee.codecpar.pointee,
            aspect: VideoFormat.aspectRatios.contains(aspect.value) ? aspect : Rational(0))
        conversion = PixelConversion(shape.pixels)
        orientation = VideoTrack.orientation(stream).0
        rate = Self.rate(av_guess_frame_rate(container, stream, nil))
        let described = stream.pointee.codecpar.pointee
        reorderDepth = UnitCoding(described.codec_id)?.reorderDepth(described) ?? 0
        let codec = String(cString: avcodec_get_name(stream.pointee.codecpar.pointee.codec_id))
        text = "\(codec) \(shape.width)x\(shape.height)" + (rate.isZero ? "" : " at \(rate.short) fps")
        guard avcodec_parameters_copy(copy, stream.pointee.codecpar) >= 0 else {
            (parameterSets, unitsFault) = ([], nil)
            throw FrameHostError(
                .exhausted, what: "not enough memory for a stream",
                remedy: "Free some memory.")
        }
        // Nothing is freed before all members are set.
        let sets = Result {
            isDecoded && !givesUnits ? [] : try Self.parameterSets(copy, base, shown, codec, isDecoded: isDecoded)
        }
        parameterSets = (try? sets.get()) ?? []
        unitsFault = if givesUnits, case .failure(let fault) = sets { FrameHostError.wrap(fault) } else { nil }
        if !isDecoded { _ = try sets.get() }
        guard shape.width > 0, shape.height > 0, shape.pixels != AV_PIX_FMT_NONE else {
            throw NetworkFault.noSize(shown)
        }
        guard PictureSize.range.contains(shape.width), PictureSize.range.contains(shape.height),
            shape.width * shape.height <= 1 << 26
        else { throw NetworkFault.impossibleSize(shown, width: shape.width, height: shape.height) }
        guard !isDecoded || ScalingConverter.canConvert(conversion.source) else {
            throw NetworkFault.unconvertible(shown, pixels: conversion.name)
        }
    }

    deinit {
        var parameters: UnsafeMutablePointer<AVCodecParameters>? = parameters
        avcodec_parameters_free(&parameters)
    }

    /// The format of its access units.
    ///
    /// - Parameter rate: The rate to be planned for; nil for the stream's own, or 25.
    func encoded(rate: Rational? = nil) -> EncodedFormat {
        EncodedFormat(
            codec: coding?.codec ?? .h264, framing: coding?.framing ?? .annexB, parameterSets: parameterSets,
            video: video(rate: rate), reorderDepth: reorderDepth)
    }

    /// The time of ticks; nil where there is none, or an impossible one.
    func time(ofTicks ticks: Int64) -> MediaTime? {
        ticks == fh_av_no_pts ? nil : timeBase.possibleTime(ofTicks: ticks)
    }

    /// When a packet is decoded. libavformat knows no DTS of a connection's first packets where pictures are reordered.
    ///
    /// - Parameter period: From picture to picture.
    func decodeTime(dts: Int64, pts: Int64, period: MediaTime) -> MediaTime? {
        if dts != fh_av_no_pts { return timeBase.possibleTime(ofTicks: dts) }
        guard pts != fh_av_no_pts, let shown = timeBase.possibleTime(ofTicks: pts) else { return nil }
        return shown - MediaTime(nanoseconds: Int64(reorderDepth) * max(period.nanoseconds, 0))
    }

    /// The format of its pictures.
    func video(rate: Rational? = nil) -> VideoFormat {
        VideoFormat(
            conversion.target, width: shape.width, height: shape.height,
            frameRate: rate ?? (self.rate.isZero ? Rational(25) : self.rate), color: conversion.color(shape.color),
            sampleAspectRatio: shape.aspect, orientation: orientation)
    }

    /// What a later run may be planned by.
    var remembered: RememberedStream {
        var track = sound?.format
        track?.language = ""
        return RememberedStream(video: encoded(), sound: track)
    }

    var libavTimeBase: AVRational { AVRational(num: timeBase.numerator, den: timeBase.denominator) }

    private static func parameterSets(
        _ parameters: UnsafeMutablePointer<AVCodecParameters>, _ timeBase: AVRational, _ shown: String, _ codec: String,
        isDecoded: Bool
    ) throws -> [UInt8] {
        guard let coding = UnitCoding(parameters.pointee.codec_id) else {
            throw NetworkFault.isNotPassedOn(shown, codec: codec, isDecoded: isDecoded)
        }
        let filter = try UnitFilter(parameters, timeBase: timeBase, of: shown)
        let sets = coding.parameterSets(ofContainer: filter.extradata)
        guard !sets.isEmpty || !coding.hasSets else {
            throw NetworkFault.noParameterSets(shown, coding, isDecoded: isDecoded)
        }
        return sets
    }

    /// The rate, if a camera may have it; else 0. Other rates are guesses from a clock.
    private static func rate(_ rate: AVRational) -> Rational {
        guard rate.num > 0, rate.den > 0, av_q2d(rate) >= 0.001, av_q2d(rate) <= 1000 else { return Rational(0) }
        return Rational(rate.num, rate.den)
    }
}

extension Rational {
    /// `29.97`, `25`.
    var short: String {
        let rounded = (value * 100).rounded() / 100
        return rounded == rounded.rounded() ? "\(Int(rounded))" : "\(rounded)"
    }
}
