// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Recordings

/// Events about what a file of a recording lacks.
struct RecordingEvents {
    let context: StageContext
    let container: Container

    func motionEnded(in path: String) {
        context.post(
            "motion-ended", level: .warning,
            text:
                "The motion ends here in '\(path)': its next sample comes too long after the one before it for \(container.name).",
            details: ["path": .string(path)])
    }

    func soundEnded(_ track: Int, in path: String) {
        context.post(
            "sound-ended", level: .warning,
            text:
                "Audio track \(track + 1) ends here in '\(path)': its next packet comes too long after the one before it for \(container.name). Record to .mkv to keep such sound."
        )
    }

    func reportLack(of sidecar: Sidecar, beside file: OutputFile) {
        let name = sidecar.path(beside: file.path)
        let text =
            file.refusals[sidecar].map { "\($0.fault(name).what). The recording goes on without writing that file." }
            ?? "'\(file.path)' is a device, so '\(name)' is not written. The recording goes on."
        postEnd(of: sidecar, name, text)
    }

    func report(_ log: SidecarLog) {
        guard log.failure != 0 else { return }
        postEnd(
            of: log.kind, log.path,
            "'\(log.path)' ends here, because it cannot be written any further: \(String(cString: strerror(log.failure))). The recording is not affected."
        )
    }

    private func postEnd(of sidecar: Sidecar, _ path: String, _ text: String) {
        let details: JSONNode = ["path": .string(path)]
        switch sidecar {
        case .gyroflow: context.post("motion-ended", level: .warning, text: text, details: details)
        case .captions: context.post("captions-ended", level: .warning, text: text, details: details)
        }
    }

    func orientationIsNotCarried(_ unit: RecordedUnit, _ orientation: Orientation, in path: String) {
        let (reason, remedy) =
            container.carriesOrientation
            ? (
                "'\(path)' declares '\(orientation)'",
                "Send 'stop' and 'start' to begin a file with the new orientation."
            ) : ("\(container.name) cannot store it", "Record to .mp4 or .mov.")
        context.post(
            "orientation-not-carried", level: .warning,
            text:
                "From frame \(unit.sequenceNumber) on the pictures have the orientation '\(unit.orientation)', but \(reason), so players show them turned wrongly. \(remedy)"
        )
    }
}
