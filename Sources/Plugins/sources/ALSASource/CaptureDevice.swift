// SPDX-License-Identifier: Apache-2.0

import CALSA
import FrameCore
import Glibc

/// An ALSA device that is open for capture: handles of the C library, and its answers as values. Together with
/// ``CaptureList`` the only file that calls it.
final class CaptureDevice: SoundCard {
    let name: String
    let format: CardFormat
    let title: String
    let stableName: String
    private let pcm: OpaquePointer
    private let status: OpaquePointer
    private let polled: UnsafeMutableBufferPointer<pollfd>

    /// How much sound the card keeps before it loses frames, microseconds. Costs no latency.
    private static let depth = 500_000
    /// The most bytes of one period that are believed.
    private static let mostBytes = 1 << 22

    /// [control thread, stage thread] Opens and sets a device, and starts nothing.
    ///
    /// - Parameters:
    ///   - rate: The nearest is taken.
    ///   - channels: The nearest number is taken.
    /// - Throws: ``CardFault``; ``CaptureFault`` as a ``FrameHostError`` for a device without a usable format.
    init(name: String, rate: Int, channels: Int, periodMs: Int) throws {
        fh_alsa_be_quiet()
        var opened: OpaquePointer?
        try Self.check("snd_pcm_open", snd_pcm_open(&opened, name, SND_PCM_STREAM_CAPTURE, Int32(SND_PCM_NONBLOCK)))
        let pcm = opened!
        var status: OpaquePointer?
        do {
            format = try Self.set(pcm, name, rate: rate, channels: channels, periodMs: periodMs)
            try Self.set(pcm, format)
            (title, stableName) = Self.names(pcm, name)
            try Self.check("snd_pcm_status_malloc", snd_pcm_status_malloc(&status))
        } catch {
            snd_pcm_close(pcm)
            throw error
        }
        (self.name, self.pcm, self.status) = (name, pcm, status!)
        polled = .allocate(capacity: Int(max(snd_pcm_poll_descriptors_count(pcm), 0)))
        polled.initialize(repeating: pollfd())
    }

    deinit {
        polled.deallocate()
        snd_pcm_status_free(status)
        snd_pcm_close(pcm)
    }

    @discardableResult
    private static func check(_ call: String, _ code: Int32) throws(CardFault) -> Int32 {
        guard code >= 0 else { throw CardFault(call: call, errno: -code) }
        return code
    }

    // MARK: Setup

    private static func set(_ pcm: OpaquePointer, _ name: String, rate: Int, channels: Int, periodMs: Int) throws
        -> CardFormat
    {
        var parameters: OpaquePointer?
        try check("snd_pcm_hw_params_malloc", snd_pcm_hw_params_malloc(&parameters))
        defer { snd_pcm_hw_params_free(parameters) }
        try check("snd_pcm_hw_params_any", snd_pcm_hw_params_any(pcm, parameters))
        // The resampler here knows the drift; one before it would only add delay.
        try check("snd_pcm_hw_params_set_rate_resample", snd_pcm_hw_params_set_rate_resample(pcm, parameters, 0))
        try check(
            "snd_pcm_hw_params_set_access",
            snd_pcm_hw_params_set_access(pcm, parameters, SND_PCM_ACCESS_RW_INTERLEAVED))
        guard
            let samples = CardSamples.allCases.first(where: {
                snd_pcm_hw_params_test_format(pcm, parameters, $0.libraryFormat) == 0
            })
        else { throw CaptureFault.noFormat(name) }
        try check("snd_pcm_hw_params_set_format", snd_pcm_hw_params_set_format(pcm, parameters, samples.libraryFormat))
        var (gotChannels, gotRate) = (UInt32(channels), UInt32(rate))
        try check(
            "snd_pcm_hw_params_set_channels_near",
            snd_pcm_hw_params_set_channels_near(pcm, parameters, &gotChannels))
        try check("snd_pcm_hw_params_set_rate_near", snd_pcm_hw_params_set_rate_near(pcm, parameters, &gotRate, nil))
        guard gotRate > 0 else { throw CaptureFault.noFormat(name) }
        var period = snd_pcm_uframes_t(Int(gotRate) * periodMs / 1000)
        try check(
            "snd_pcm_hw_params_set_period_size_near",
            snd_pcm_hw_params_set_period_size_near(pcm, parameters, &period, nil))
        var buffer = snd_pcm_uframes_t(Int(gotRate) * depth / 1_000_000)
        try check(
            "snd_pcm_hw_params_set_buffer_size_near",
            snd_pcm_hw_params_set_buffer_size_near(pcm, parameters, &buffer))
        try check("snd_pcm_hw_params", snd_pcm_hw_params(pcm, parameters))
        try check("snd_pcm_hw_params_get_rate", snd_pcm_hw_params_get_rate(parameters, &gotRate, nil))
        try check("snd_pcm_hw_params_get_channels", snd_pcm_hw_params_get_channels(parameters, &gotChannels))
        try check("snd_pcm_get_params", snd_pcm_get_params(pcm, &buffer, &period))
        let format = CardFormat(
            samples: samples, rate: Int(gotRate), channels: Int(gotChannels), period: Int(clamping: period),
            buffer: Int(clamping: buffer))
        // A driver's numbers are checked before they are used.
        guard AudioFormat.sampleRates.contains(format.rate), (1...64).contains(format.channels),
            (1...mostBytes / format.frameBytes).contains(format.period),
            (format.period...16 * mostBytes).contains(format.buffer)
        else {
            throw CaptureFault.impossible(
                name, rate: format.rate, channels: format.channels, period: format.period, buffer: format.buffer)
        }
        return format
    }

    private static func set(_ pcm: OpaquePointer, _ format: CardFormat) throws(CardFault) {
        var parameters: OpaquePointer?
        try check("snd_pcm_sw_params_malloc", snd_pcm_sw_params_malloc(&parameters))
        defer { snd_pcm_sw_params_free(parameters) }
        try check("snd_pcm_sw_params_current", snd_pcm_sw_params_current(pcm, parameters))
        try check(
            "snd_pcm_sw_params_set_tstamp_mode",
            snd_pcm_sw_params_set_tstamp_mode(pcm, parameters, SND_PCM_TSTAMP_ENABLE))
        // Where this is refused, the stamps are those of another clock, which CardTime detects.
        _ = snd_pcm_sw_params_set_tstamp_type(pcm, parameters, SND_PCM_TSTAMP_TYPE_MONOTONIC)
        try check(
            "snd_pcm_sw_params_set_avail_min",
            snd_pcm_sw_params_set_avail_min(pcm, parameters, snd_pcm_uframes_t(format.period)))
        try check("snd_pcm_sw_params_set_start_threshold", snd_pcm_sw_params_set_start_threshold(pcm, parameters, 1))
        try check("snd_pcm_sw_params", snd_pcm_sw_params(pcm, parameters))
    }

    private static func names(_ pcm: OpaquePointer, _ name: String) -> (title: String, stable: String) {
        var info: OpaquePointer?
        guard snd_pcm_info_malloc(&info) >= 0 else { return (name, name) }
        defer { snd_pcm_info_free(info) }
        guard snd_pcm_info(pcm, info) >= 0 else { return (name, name) }
        let device = snd_pcm_info_get_name(info).map { String(cString: $0) } ?? ""
        let card = snd_pcm_info_get_card(info)
        var text: UnsafeMutablePointer<CChar>?
        var title = device.isEmpty ? name : device
        if card >= 0, snd_card_get_name(card, &text) >= 0, let text {
            title = device.isEmpty ? String(cString: text) : "\(String(cString: text)), \(device)"
            free(text)
        }
        return (title, StableName.of(name) { CaptureList.cardID($0) })
    }

    // MARK: At work

    func start() throws(CardFault) {
        try Self.check("snd_pcm_prepare", snd_pcm_prepare(pcm))
        try Self.check("snd_pcm_start", snd_pcm_start(pcm))
    }

    /// Does not use `snd_pcm_wait`, which starts its timeout again whenever a descriptor is ready for anything
    /// else, and so may never return.
    func wait(milliseconds: Int32) throws(CardFault) -> Bool {
        let available = snd_pcm_avail_update(pcm)
        guard available >= 0 else {
            throw CardFault(call: "snd_pcm_avail_update", errno: Int32(clamping: -available))
        }
        if available >= format.period { return true }
        let count = UInt32(polled.count)
        try Self.check("snd_pcm_poll_descriptors", snd_pcm_poll_descriptors(pcm, polled.baseAddress, count))
        guard poll(polled.baseAddress, nfds_t(count), milliseconds) > 0 else { return false }
        var events: UInt16 = 0
        try Self.check(
            "snd_pcm_poll_descriptors_revents",
            snd_pcm_poll_descriptors_revents(pcm, polled.baseAddress, count, &events))
        return events != 0
    }

    /// Some drivers say only in their state that they have overrun or are lost.
    func look() throws(CardFault) -> CardStatus {
        try Self.check("snd_pcm_status", snd_pcm_status(pcm, status))
        switch snd_pcm_status_get_state(status) {
        case SND_PCM_STATE_XRUN: throw CardFault(call: "snd_pcm_status", errno: EPIPE)
        case SND_PCM_STATE_DISCONNECTED: throw CardFault(call: "snd_pcm_status", errno: ENODEV)
        case SND_PCM_STATE_SUSPENDED: throw CardFault(call: "snd_pcm_status", errno: ESTRPIPE)
        default: break
        }
        var stamp = timespec()
        snd_pcm_status_get_htstamp(status, &stamp)
        return CardStatus(
            stamp: Int64(stamp.tv_sec) &* 1_000_000_000 &+ Int64(stamp.tv_nsec),
            available: min(Int(clamping: snd_pcm_status_get_avail(status)), format.buffer))
    }

    func read(_ bytes: UnsafeMutableRawPointer, frames: Int) throws(CardFault) -> Int {
        let count = snd_pcm_readi(pcm, bytes, snd_pcm_uframes_t(frames))
        guard count != -Int(EAGAIN) else { return 0 }
        guard count >= 0 else { throw CardFault(call: "snd_pcm_readi", errno: Int32(clamping: -count)) }
        return min(count, frames)
    }

    func resume() throws(CardFault) -> Bool {
        let code = snd_pcm_resume(pcm)
        if code == -EAGAIN { return false }
        // A driver that cannot resume is started again.
        if code < 0 { try start() }
        return true
    }

    func close() { snd_pcm_drop(pcm) }
}

extension CardSamples {
    fileprivate var libraryFormat: snd_pcm_format_t {
        switch self {
        // The aliases without LE or BE (SND_PCM_FORMAT_S16) have the machine's byte order.
        case .s16: SND_PCM_FORMAT_S16
        case .s32: SND_PCM_FORMAT_S32
        case .float: SND_PCM_FORMAT_FLOAT
        }
    }
}
