// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Recordings

extension RecordingFault {
    /// What keeps a recording of this name from being made.
    static func refused(_ path: String, _ refusal: FileRefusal) -> FrameHostError {
        refused(path, refusal, holder: OutputFile.holder)
    }

    /// The fault of a file that has the name of a sidecar, and that no recorder has made.
    static func foreign(_ path: String) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, what: "'\(path)' was not made by a recorder, so it is not replaced",
            remedy: moveAway, option: "path")
    }

    /// - Parameters:
    ///   - item: `picture` or `packet`.
    ///   - longest: The longest gap that a file of this kind can express.
    static func gap(
        _ path: String, _ container: Container, of item: String = "picture", gap: MediaTime, longest: MediaTime
    ) -> FrameHostError {
        FrameHostError(
            .invalidMedia,
            what:
                "'\(path)' is complete and ends here: the next \(item) comes \(shortSeconds(gap.seconds)) s later, but \(container.name) allows at most \(shortSeconds(longest.seconds)) s between two \(item)s",
            remedy: container == .mkv ? "Check the times of the recorded \(item)s." : "Record to .mkv.")
    }

    /// - Parameters:
    ///   - code: The errno; 0 where there is none.
    ///   - saved: Frames and seconds in the file that play.
    static func writing(_ path: String, reason: String, code: Int32, saved: (frames: Int, seconds: Double))
        -> FrameHostError
    {
        let span = "(\(shortSeconds(saved.seconds)) s)"
        let rest =
            switch saved.frames {
            case 0: "Nothing of the file was saved."
            case 1: "The first frame \(span) is saved and can be played."
            default: "The first \(saved.frames) frames \(span) are saved and can be played."
            }
        let remedy =
            switch code {
            case ENOSPC, EDQUOT: "Free some space, or record to another disk. "
            case EFBIG:
                "Set 'segmentMegabytes' below the limit (4000 suits FAT32) to continue in new files, raise the limit of file sizes (ulimit -f), or record to another disk. "
            case EIO: "Check the disk, or record to another one. "
            default: ""
            }
        return FrameHostError(
            .unavailable, what: "writing '\(path)' failed: \(reason)", remedy: remedy + rest, reason: .of(errno: code))
    }

    /// The fault of a file that was deleted while it was written.
    static func removed(_ path: String) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "'\(path)' was removed while it was being written; nothing of it was saved",
            remedy:
                "Record to a folder that no other program clears. To remove old files, use 'keepSeconds' and 'keepMegabytes'."
        )
    }

    /// The fault of a file that another program made shorter while it was written.
    static func shortened(_ path: String) -> FrameHostError {
        FrameHostError(
            .unavailable,
            what:
                "'\(path)' was shortened by another program while it was being written; the part that was cut off is lost",
            remedy: "Record to a folder in which no other program writes.")
    }

    /// Why a recording by command has not begun, or has ended, and what becomes of it.
    ///
    /// - Parameter keeps: Whether there is memory for the past.
    static func waiting(_ fault: FrameHostError, keeps: Bool) -> String {
        "\(fault) The recording begins \(keeps ? "with what is kept in memory " : "")as soon as it can be written."
    }

    /// - Parameter ring: The memory for the past; nil where there is none.
    static func losing(_ ring: PreEventRing?, _ options: RecorderOptions) -> String {
        guard let ring else {
            return
                "Pictures that were to be recorded are lost until the recording can be written: there is no memory for the past ('preEventSeconds')."
        }
        let hundredths = (Double(ring.byteCapacity) / 10_000).rounded()
        return
            "Pictures that were to be recorded are being lost, the oldest first: the memory for the past (\(hundredths / 100) MB) is full, and the recording still cannot be written."
    }

    /// What a run has lost in the end, although it went on.
    static func lost(_ pictures: Int, because fault: FrameHostError?) -> FrameHostError {
        FrameHostError(
            .unavailable,
            what:
                "\(pictures == 1 ? "1 picture that was" : "\(pictures) pictures that were") to be recorded \(pictures == 1 ? "is" : "are") in no file",
            cause: fault.map { "\($0)" } ?? "", reason: fault?.reason)
    }

    /// `1 frame`, `87 frames`.
    static func count(_ frames: Int) -> String { frames == 1 ? "1 frame" : "\(frames) frames" }

    /// Why recordings cannot start as far back as 'preEventSeconds' says.
    static func ofPast(_ lack: PreEventRing.Lack, _ ring: PreEventRing, _ options: RecorderOptions) -> String {
        let hundredths = (Double(ring.byteCapacity) / 10_000).rounded()
        let room = lack.isOfBytes ? "\(hundredths / 100) MB" : "\(ring.unitCapacity) pictures"
        let what =
            lack.isOfOneGroup
            ? "is full before the next keyframe comes, so recordings may start without any of the past"
            : "holds less than \(shortSeconds(options.preEventSeconds)) s, so recordings start less far back"
        let more =
            options.preEventMegabytes == nil
            ? "Set 'preEventMegabytes' to more than \(hundredths / 100)" : "Raise 'preEventMegabytes'"
        let remedy =
            lack.isOfBytes
            ? "\(more), or lower the bitrate or the time between keyframes."
            : lack.isOfOneGroup
                ? "Lower the time between keyframes." : "Lower 'preEventSeconds' or the frame rate."
        return "The memory for the past (\(room)) \(what). \(remedy)"
    }

    /// One decimal, without Foundation.
    static func shortSeconds(_ seconds: Double) -> String {
        let tenths = Int((seconds * 10).rounded())
        return "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10).\(abs(tenths) % 10)"
    }
}
