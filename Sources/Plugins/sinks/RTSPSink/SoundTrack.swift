// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What the sink must know about its input of sound.
struct SoundTrack {
    let form: SoundPacketizer.Form
    let description: SoundDescription
    /// RTP's ticks for each second.
    let ticksPerSecond: Int64
    /// Units that a ring must have for those that are kept for half a second, and some on their way.
    let ringBlocks: Int

    /// One 'decode' holds for the pictures and the sound of a source.
    private static let encodeAgain =
        "Add a second source of the same stream or file without \"decode\": false, encode its sound with 'audio-encoder', and name that encoder in 'from' in place of this sound."

    /// - Throws: ``FrameHostError`` for sound that cannot be described to a client.
    init(_ format: EncodedFormat) throws {
        guard let track = format.audio else {
            throw FrameHostError(.broken, what: "the RTSP sink was offered \(format) as sound")
        }
        let codec: SoundDescription.Codec
        switch format.codec {
        case .aac:
            guard let config = AudioSpecificConfig.bytes(in: track.extradata) else {
                throw FrameHostError(
                    .invalidConfiguration, place: "from",
                    what:
                        "the AAC has no AudioSpecificConfig that can be read, and clients need one to decode the sound",
                    remedy: Self.encodeAgain
                )
            }
            form = .aac
            ticksPerSecond = Int64(track.sampleRate)
            codec = .aac(config: config, sampleRate: track.sampleRate, channelCount: track.channelCount)
        case .opus:
            guard track.channelCount <= 2 else {
                throw FrameHostError(
                    .invalidConfiguration, place: "from",
                    what: "RTP carries Opus of 1 or 2 channels (RFC 7587), but this has \(track.channelCount)",
                    remedy:
                        "Encode the sound to AAC with 'audio-encoder', or put an 'audio-resample' with \"channels\": 2 before its encoder."
                )
            }
            form = .opus
            ticksPerSecond = 48_000
            codec = .opus(isStereo: track.channelCount > 1)
        case .muLaw, .aLaw:
            form = .g711(bytesPerTick: max(track.channelCount, 1))
            ticksPerSecond = Int64(track.sampleRate)
            codec = .g711(
                isMuLaw: format.codec == .muLaw, sampleRate: track.sampleRate, channelCount: track.channelCount)
        case .g726:
            guard track.sampleRate == 8000, track.channelCount == 1 else {
                throw FrameHostError(
                    .invalidConfiguration, place: "from",
                    what:
                        "RTP carries G.726 of 8000 Hz and 1 channel (RFC 3551), but this has \(track.sampleRate) Hz and \(track.channelCount)",
                    remedy: Self.encodeAgain)
            }
            // RTSP sources know the bits of a code, some containers only the bit rate.
            let bits = [track.bitsPerSample, track.bitRate / 8000].first { (2...5).contains($0) }
            guard let bits else {
                throw FrameHostError(
                    .invalidConfiguration, place: "from",
                    what:
                        "nothing says whether the G.726 has 16, 24, 32 or 40 kbit/s, and clients need that to decode it",
                    remedy: Self.encodeAgain)
            }
            form = .g726(bits: bits)
            ticksPerSecond = 8000
            codec = .g726(bits: bits)
        case .mp3:
            form = .mp3
            ticksPerSecond = 90_000
            codec = .mp3
        default:
            throw FrameHostError(.broken, what: "the RTSP sink was offered \(format) as sound")
        }
        guard (1...RTPClock.mostTicksPerSecond).contains(ticksPerSecond) else {
            throw FrameHostError(
                .invalidConfiguration, place: "from",
                what:
                    "the sound's sample rate must be from 1 to \(RTPClock.mostTicksPerSecond) Hz, but is \(ticksPerSecond) Hz",
                remedy: Self.encodeAgain)
        }
        description = SoundDescription(codec: codec, bitrateKbps: format.bitrateKbps)
        let kept = KeptUnits<MediaBlock>.Limits()
        let samples = Int64(max(track.samplesPerPacket, 1)) * 1_000_000_000 / Int64(max(track.sampleRate, 1))
        let unitsKept = track.samplesPerPacket == 0 ? kept.mostAlone : Int(kept.crowdedWindow / max(samples, 1)) + 1
        ringBlocks = min(unitsKept, kept.mostAlone) + 32
    }
}
