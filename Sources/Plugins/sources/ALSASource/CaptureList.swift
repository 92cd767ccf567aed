// SPDX-License-Identifier: Apache-2.0

import CALSA
import FrameCore
import Glibc

/// The devices for capture that ALSA's configuration names. [control thread]
enum CaptureList {
    /// Each with its name and its description.
    static func topics() -> [StageTopic] {
        fh_alsa_be_quiet()
        var hints: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
        guard snd_device_name_hint(-1, "pcm", &hints) >= 0, let hints else { return [] }
        defer { snd_device_name_free_hint(hints) }
        var topics: [StageTopic] = []
        var next = hints
        while let hint = next.pointee {
            next += 1
            // No direction means both.
            guard let name = text(hint, "NAME"), text(hint, "IOID") != "Output" else { continue }
            let lines = (text(hint, "DESC") ?? "").split(separator: "\n").map(String.init)
            topics.append(StageTopic(name, summary: lines.joined(separator: ", ")))
        }
        return topics
    }

    /// One device, also one that is not listed (`hw:1,0`), with what it can do. Opens it for a moment.
    ///
    /// - Returns: Nil for one that is neither listed nor there.
    static func topic(_ name: String) -> StageTopic? {
        let listed = topics().first { $0.name.lowercased() == name.lowercased() }
        var topic = listed ?? StageTopic(name, summary: "")
        var fault: CardFault?
        do throws(CardFault) { topic.facts = try facts(topic.name) } catch { fault = error }
        guard let fault else { return topic }
        guard listed != nil else { return nil }
        var error = CaptureFault.of(fault, topic.name)
        // Of no chain's option.
        error.place = FaultPlace()
        topic.facts = [StageTopic.Fact("fault", error.description)]
        return topic
    }

    private static func text(_ hint: UnsafeMutableRawPointer, _ key: String) -> String? {
        guard let value = snd_device_name_get_hint(hint, key) else { return nil }
        defer { free(value) }
        return String(cString: value)
    }

    private static func facts(_ name: String) throws(CardFault) -> [StageTopic.Fact] {
        fh_alsa_be_quiet()
        var opened: OpaquePointer?
        let code = snd_pcm_open(&opened, name, SND_PCM_STREAM_CAPTURE, Int32(SND_PCM_NONBLOCK))
        guard code >= 0, let pcm = opened else { throw CardFault(call: "snd_pcm_open", errno: -code) }
        defer { snd_pcm_close(pcm) }
        var parameters: OpaquePointer?
        guard snd_pcm_hw_params_malloc(&parameters) >= 0 else {
            throw CardFault(call: "snd_pcm_hw_params_malloc", errno: ENOMEM)
        }
        defer { snd_pcm_hw_params_free(parameters) }
        let any = snd_pcm_hw_params_any(pcm, parameters)
        guard any >= 0 else { throw CardFault(call: "snd_pcm_hw_params_any", errno: -any) }
        var (low, high) = (UInt32(0), UInt32(0))
        var facts: [StageTopic.Fact] = []
        if snd_pcm_hw_params_get_rate_min(parameters, &low, nil) >= 0,
            snd_pcm_hw_params_get_rate_max(parameters, &high, nil) >= 0
        {
            facts.append(StageTopic.Fact("sampleRate", low == high ? "\(low)" : "\(low)...\(high)"))
        }
        if snd_pcm_hw_params_get_channels_min(parameters, &low) >= 0,
            snd_pcm_hw_params_get_channels_max(parameters, &high) >= 0
        {
            facts.append(StageTopic.Fact("channels", low == high ? "\(low)" : "\(low)...\(high)"))
        }
        return facts
    }

    /// The id of a card by its number: `PCH`. Nil where there is none.
    static func cardID(_ number: Int) -> String? {
        var (control, info): (OpaquePointer?, OpaquePointer?)
        guard snd_ctl_open(&control, "hw:\(number)", 0) >= 0 else { return nil }
        defer { snd_ctl_close(control) }
        guard snd_ctl_card_info_malloc(&info) >= 0 else { return nil }
        defer { snd_ctl_card_info_free(info) }
        guard snd_ctl_card_info(control, info) >= 0, let id = snd_ctl_card_info_get_id(info) else { return nil }
        return String(cString: id)
    }
}
