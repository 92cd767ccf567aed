// SPDX-License-Identifier: Apache-2.0

import CX264
import FrameCore
import Synchronization

/// The settings with which an encoder is opened.
struct X264Settings {
    var format: VideoFormat
    var preset = X264Preset.veryfast
    var tune = X264Tune.none
    var profile: X264Profile?
    var level: H264Level?
    var rate: RateControl
    var keyframeSeconds = 2.0
    var sceneCut: Int?
    var threads: Int?
    var bframes: Int?
    /// Whether each keyframe carries SPS and PPS.
    var repeatsParameterSets = false
    /// What each keyframe says of the pictures' brightness (H.264 D.1.29, D.1.31).
    var hdr: HDRMetadata?
}

/// One picture as x264 gave it.
struct EncodedPicture {
    /// All NAL units with start codes, in x264's own memory: valid until the next call to the encoder.
    var bytes: UnsafeRawBufferPointer
    var dtsTicks: Int64
    var isKeyframe: Bool
    /// The PTS of its frame.
    var pts: MediaTime
}

/// One open x264 encoder; the only place that calls the library.
///
/// Used by one thread at a time. x264 copies the planes it is handed before `encode` returns, and has threads of its
/// own.
final class X264Handle {
    /// The most frames that any settings can keep inside x264: 250 of lookahead, 250 between its threads, 16 B-frames,
    /// 64 frame threads, rounded up.
    static let mostDelay = 640

    /// SPS and PPS, each with a four-byte start code.
    let parameterSets: [UInt8]
    /// x264's version and settings (SEI, user data unregistered, H.264 D.1.7), for the first access unit.
    let settingsMessage: [UInt8]
    /// The most frames that x264 has accepted and not yet returned (`x264_encoder_maximum_delayed_frames`).
    let maximumDelay: Int
    /// The most pictures that a decoder must reorder.
    let reorderDepth: Int
    /// Memory x264 takes for its pictures, bytes; see ``X264Memory``.
    let ownBytes: Int

    private let encoder: OpaquePointer
    private let log: X264Log
    /// Where x264 finds `log`. It lives as long as the encoder.
    private let callback: UnsafeMutablePointer<fh_x264_log>
    private let picture: UnsafeMutablePointer<x264_picture_t>
    private let output: UnsafeMutablePointer<x264_picture_t>
    private let planeCount: Int
    private let colorSpace: Int32

    /// [control thread] Opens x264 (`x264_encoder_open`) and makes the parameter sets.
    ///
    /// - Parameter report: Gets the first few warnings and errors of x264.
    /// - Throws: ``FrameHostError`` `.callFailed` with x264's own words.
    init(_ settings: X264Settings, report: @escaping @Sendable (String) -> Void) throws {
        let log = X264Log(report: report)
        var parameters = try Self.parameters(settings)
        let callback = log.makeCallback()
        fh_x264_set_log(&parameters, callback, X264_LOG_WARNING)
        guard let encoder = fh_x264_open(&parameters) else {
            callback.deallocate()
            throw FrameHostError(
                .callFailed, what: "x264 cannot encode \(settings.format) with these options",
                remedy: "Change the option that x264's own message names, or free some memory if it names none.",
                cause: log.lastLine)
        }
        self.encoder = encoder
        self.log = log
        self.callback = callback
        (picture, output) = (.allocate(capacity: 1), .allocate(capacity: 1))
        maximumDelay = Int(x264_encoder_maximum_delayed_frames(encoder))
        planeCount = settings.format.pixelFormat.planeCount
        colorSpace = parameters.i_csp

        x264_encoder_parameters(encoder, &parameters)
        // As x264 writes it to the VUI: a pyramid of B-frames is one level deeper.
        reorderDepth = parameters.i_bframe == 0 ? 0 : parameters.i_bframe_pyramid == X264_B_PYRAMID_NONE ? 1 : 2
        ownBytes = X264Memory(parameters, mostDelay: maximumDelay).byteCount
        (parameterSets, settingsMessage) = Self.headers(encoder)
        x264_picture_init(picture)
        x264_picture_init(output)
        guard !parameterSets.isEmpty else {
            throw FrameHostError(
                .callFailed, what: "x264 returned no parameter sets",
                remedy: "If memory has run out, free some and start the chain again.", cause: log.lastLine)
        }
    }

    deinit {
        x264_encoder_close(encoder)
        callback.deallocate()
        picture.deallocate()
        output.deallocate()
    }

    /// Frames accepted and not yet given back (`x264_encoder_delayed_frames`).
    var delayedFrames: Int { Int(x264_encoder_delayed_frames(encoder)) }

    /// Encodes one frame; gives the picture that became ready, which is an earlier one when x264 looks ahead or
    /// reorders.
    ///
    /// - Parameters:
    ///   - tick: PTS in the format's time base, later than that of the frame before.
    ///   - messages: SEI messages for the picture. x264 reads them when it encodes the picture.
    /// - Throws: ``FrameHostError`` `.callFailed`.
    func encode(
        _ frame: borrowing Frame, tick: Int64, asKeyframe: Bool,
        messages: PictureMessages.Messages? = nil
    ) throws -> EncodedPicture? {
        x264_picture_init(picture)
        if let messages {
            picture.pointee.extra_sei.num_payloads = Int32(messages.count)
            picture.pointee.extra_sei.payloads = messages.first
        }
        // A keyframe is an IDR picture here (no open GOPs). If it were requested as an IDR picture, x264 would warn
        // where its own count makes one too.
        picture.pointee.i_type = asKeyframe ? X264_TYPE_KEYFRAME : X264_TYPE_AUTO
        picture.pointee.i_pts = tick
        // Ticks may be coarser than the PTS, so the PTS is passed along as an opaque pointer value.
        picture.pointee.opaque = UnsafeMutableRawPointer(bitPattern: Int(frame.pts.nanoseconds))
        picture.pointee.img.i_csp = colorSpace
        picture.pointee.img.i_plane = Int32(planeCount)
        return try frame.withPlane(0) { first in
            setPlane(0, first)
            return try frame.withPlane(1) { second in
                setPlane(1, second)
                guard planeCount == 3 else { return try call(picture) }
                return try frame.withPlane(2) { third in
                    setPlane(2, third)
                    return try call(picture)
                }
            }
        }
    }

    /// The next of the pictures still inside; nil when x264 has none ready yet. Call again while `delayedFrames` is
    /// above 0.
    func flush() throws -> EncodedPicture? { try call(nil) }

    /// Changes bitrate and buffer from the next frame on (`x264_encoder_reconfig`); a buffer cannot be added or
    /// removed.
    func setRate(_ rate: RateControl) throws {
        var parameters = x264_param_t()
        x264_encoder_parameters(encoder, &parameters)
        Self.set(rate, &parameters)
        guard x264_encoder_reconfig(encoder, &parameters) == 0 else {
            throw FrameHostError(
                .callFailed, what: "x264 refused the new bitrate", remedy: "Use another 'bitrateKbps'.",
                cause: log.lastLine)
        }
    }

    private func setPlane(_ index: Int32, _ plane: Plane) {
        fh_x264_set_plane(picture, index, plane.baseAddress, Int32(plane.strideBytes))
    }

    private func call(_ input: UnsafeMutablePointer<x264_picture_t>?) throws -> EncodedPicture? {
        var units: UnsafeMutablePointer<x264_nal_t>?
        var count: Int32 = 0
        let size = x264_encoder_encode(encoder, &units, &count, input, output)
        guard size >= 0 else {
            throw FrameHostError(
                .callFailed, what: "x264 could not encode the picture",
                remedy: "If memory has run out, free some and start the chain again.", cause: log.lastLine)
        }
        guard size > 0, let first = units?.pointee.p_payload else { return nil }
        // The payloads of one call lie one after the other (x264.h, x264_encoder_encode).
        return EncodedPicture(
            bytes: UnsafeRawBufferPointer(start: first, count: Int(size)), dtsTicks: output.pointee.i_dts,
            isKeyframe: output.pointee.b_keyframe != 0,
            pts: MediaTime(nanoseconds: Int64(Int(bitPattern: output.pointee.opaque))))
    }

    // MARK: Setup

    private static func parameters(_ settings: X264Settings) throws -> x264_param_t {
        let format = settings.format
        var parameters = x264_param_t()
        let tune = settings.tune == .none ? nil : settings.tune.rawValue
        guard x264_param_default_preset(&parameters, settings.preset.rawValue, tune) == 0 else {
            throw FrameHostError(
                .callFailed,
                what: "x264 has no preset '\(settings.preset.rawValue)' with tune '\(settings.tune.rawValue)'",
                remedy: "Use another 'preset' or 'tune'.", option: "preset")
        }
        parameters.i_csp = format.pixelFormat == .nv12 ? X264_CSP_NV12 : X264_CSP_I420
        parameters.i_width = Int32(format.width)
        parameters.i_height = Int32(format.height)
        parameters.i_threads = Int32(settings.threads ?? Int(X264_THREADS_AUTO))
        if let level = settings.level { parameters.i_level_idc = level.number }
        if let sceneCut = settings.sceneCut { parameters.i_scenecut_threshold = Int32(sceneCut) }
        if let bframes = settings.bframes { parameters.i_bframe = Int32(bframes) }
        // Parameter sets are part of the link's format, and stages that need them in the stream add them. But stages
        // that go on when an encoder is replaced only know the old format.
        parameters.b_repeat_headers = settings.repeatsParameterSets ? 1 : 0
        parameters.b_annexb = 1
        setTiming(settings, &parameters)
        set(settings.rate, &parameters)
        setUsability(format, &parameters)
        if let hdr = settings.hdr { set(hdr, &parameters) }
        if let profile = settings.profile, x264_param_apply_profile(&parameters, profile.rawValue) != 0 {
            throw FrameHostError(
                .invalidConfiguration, what: "x264 cannot use the profile '\(profile.rawValue)' with these options",
                remedy: "Leave 'profile' out.", option: "profile")
        }
        return parameters
    }

    /// Sets a constant rate as such (also in the VUI, H.264 E.2.1). With a variable rate x264 computes with the time
    /// stamps, for which it must wait for the next frame. zerolatency forbids that, so x264 gets 30 pictures a second
    /// as an estimate for its bitrate. In both cases time stamps come back unchanged.
    private static func setTiming(_ settings: X264Settings, _ parameters: inout x264_param_t) {
        let isConstant = !settings.format.frameRate.isZero
        let rate = isConstant ? settings.format.frameRate : Rational(30)
        parameters.b_vfr_input = isConstant || settings.tune == .zerolatency ? 0 : 1
        parameters.i_timebase_num = UInt32(settings.format.timeBase.numerator)
        parameters.i_timebase_den = UInt32(settings.format.timeBase.denominator)
        parameters.i_fps_num = UInt32(rate.numerator)
        parameters.i_fps_den = UInt32(rate.denominator)
        // At a variable rate KeyframePacer makes keyframes by time, not by number.
        let frames = isConstant ? (rate.value * settings.keyframeSeconds).rounded() : .infinity
        parameters.i_keyint_max = Int32(min(max(frames, 1), Double(X264_KEYINT_MAX_INFINITE)))
    }

    private static func set(_ rate: RateControl, _ parameters: inout x264_param_t) {
        switch rate.goal {
        case .average(let kbps):
            parameters.rc.i_rc_method = X264_RC_ABR
            parameters.rc.i_bitrate = Int32(kbps)
        case .quality(let factor):
            parameters.rc.i_rc_method = X264_RC_CRF
            parameters.rc.f_rf_constant = Float(factor)
        case .quantizer(let qp):
            parameters.rc.i_rc_method = X264_RC_CQP
            parameters.rc.i_qp_constant = Int32(qp)
        }
        parameters.rc.i_vbv_max_bitrate = Int32(rate.buffer?.maxKbps ?? 0)
        parameters.rc.i_vbv_buffer_size = Int32(rate.buffer?.kbits ?? 0)
    }

    /// Video usability information (H.264 annex E): shape of a sample and colour. Its code points are those of
    /// ``ColorDescription``.
    private static func setUsability(_ format: VideoFormat, _ parameters: inout x264_param_t) {
        let color = format.color
        parameters.vui.i_sar_width = format.sampleAspectRatio.isZero ? 0 : format.sampleAspectRatio.numerator
        parameters.vui.i_sar_height = format.sampleAspectRatio.isZero ? 0 : format.sampleAspectRatio.denominator
        parameters.vui.b_fullrange = color.range == .full ? 1 : 0
        parameters.vui.i_colorprim = Int32(color.primaries)
        parameters.vui.i_transfer = Int32(color.transfer)
        // 0 is RGB, which 4:2:0 cannot be.
        parameters.vui.i_colmatrix = Int32(color.matrix == 0 ? 2 : color.matrix)
        parameters.vui.i_chroma_loc = color.chromaSiting == 0 ? 0 : Int32(color.chromaSiting) - 1
    }

    private static func set(_ hdr: HDRMetadata, _ parameters: inout x264_param_t) {
        if let display = hdr.masteringDisplay {
            parameters.mastering_display.b_mastering_display = 1
            parameters.mastering_display.i_red_x = Int32(display.red.x)
            parameters.mastering_display.i_red_y = Int32(display.red.y)
            parameters.mastering_display.i_green_x = Int32(display.green.x)
            parameters.mastering_display.i_green_y = Int32(display.green.y)
            parameters.mastering_display.i_blue_x = Int32(display.blue.x)
            parameters.mastering_display.i_blue_y = Int32(display.blue.y)
            parameters.mastering_display.i_white_x = Int32(display.white.x)
            parameters.mastering_display.i_white_y = Int32(display.white.y)
            parameters.mastering_display.i_display_max = Int64(display.maximum)
            parameters.mastering_display.i_display_min = Int64(display.minimum)
        }
        if let light = hdr.contentLight {
            parameters.content_light_level.b_cll = 1
            parameters.content_light_level.i_max_cll = Int32(light.maximum)
            parameters.content_light_level.i_max_fall = Int32(light.average)
        }
    }

    private static func headers(_ encoder: OpaquePointer) -> (parameterSets: [UInt8], settingsMessage: [UInt8]) {
        var units: UnsafeMutablePointer<x264_nal_t>?
        var count: Int32 = 0
        var sets: [UInt8] = []
        var message: [UInt8] = []
        guard x264_encoder_headers(encoder, &units, &count) >= 0, let units else { return (sets, message) }
        for unit in UnsafeBufferPointer(start: units, count: Int(count)) {
            let bytes = UnsafeBufferPointer(start: unit.p_payload, count: Int(unit.i_payload))
            if unit.i_type == Int32(NAL_SEI.rawValue) { message += bytes } else { sets += bytes }
        }
        return (sets, message)
    }
}

/// Collects x264's own lines: the last is kept as the cause of an error, and the first few are handed on. Called from
/// any thread of x264.
private final class X264Log: Sendable {
    private struct State {
        var lastLine = ""
        var count = 0
    }

    static let mostLines = 20

    private let state = Mutex(State())
    private let report: @Sendable (String) -> Void

    init(report: @escaping @Sendable (String) -> Void) { self.report = report }

    /// The function that x264 calls with each line. It does not keep this object alive.
    func makeCallback() -> UnsafeMutablePointer<fh_x264_log> {
        let callback = UnsafeMutablePointer<fh_x264_log>.allocate(capacity: 1)
        callback.initialize(
            to: fh_x264_log(
                owner: Unmanaged.passUnretained(self).toOpaque(),
                line: { owner, _, text in
                    guard let owner, let text else { return }
                    Unmanaged<X264Log>.fromOpaque(owner).takeUnretainedValue().add(String(cString: text))
                }))
        return callback
    }

    var lastLine: String { state.withLock { $0.lastLine } }

    private func add(_ line: String) {
        let isReported = state.withLock {
            $0.lastLine = line
            $0.count += 1
            return $0.count <= Self.mostLines
        }
        if isReported { report("x264: \(line)\(line.hasSuffix(".") || line.hasSuffix("!") ? "" : ".")") }
    }
}
