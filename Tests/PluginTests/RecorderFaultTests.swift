// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Recorder
@testable import Recordings

@Suite struct RecorderFaultTests {
    /// A file that somebody deletes has no name any more: what follows would be seen by nobody.
    @Test(arguments: ["mp4", "mkv"]) func noticesThatItsFileIsGone(ending: String) throws {
        let folder = try ScratchFolder()
        let path = folder.file("a.\(ending)")
        let recorder = try StageDriver(recording: #"{ "path": "\#(path)" }"#, RecorderStreams.format())
        let error = #expect(throws: FrameHostError.self) {
            for (number, unit) in RecorderStreams.steady(200, isKey: { $0 % 25 == 0 }).enumerated() {
                if number == 60 { try FileManager.default.removeItem(atPath: path) }
                try recorder.send(unit)
            }
        }
        let text =
            "'\(path)' was removed while it was being written; nothing of it was saved."
            + " Record to a folder that no other program clears. To remove old files, use 'keepSeconds' and 'keepMegabytes'."
        #expect(error?.description.hasSuffix(text) == true, "\(String(describing: error))")
        let failed = recorder.takeEvents().last!
        #expect(failed.name == "recording-did-fail")
        #expect(RecorderStreams.names(in: folder) == [])
        try recorder.stop()
    }

    /// Another program empties the file: while it is written, or just before its end.
    @Test(arguments: ["mp4", "mkv"], [60, 199]) func noticesThatItsFileWasShortened(ending: String, at: Int) throws {
        let folder = try ScratchFolder()
        let path = folder.file("a.\(ending)")
        let recorder = try StageDriver(recording: #"{ "path": "\#(path)" }"#, RecorderStreams.format())
        let error = #expect(throws: FrameHostError.self) {
            for (number, unit) in RecorderStreams.steady(200, isKey: { $0 % 25 == 0 }).enumerated() {
                if number == at { truncate(path, 0) }
                try recorder.send(unit)
            }
            try recorder.drain()
            try recorder.stop()
        }
        let text =
            "'\(path)' was shortened by another program while it was being written; the part that was cut off is lost."
            + " Record to a folder in which no other program writes."
        #expect(error?.description.hasSuffix(text) == true, "\(String(describing: error))")
        #expect(recorder.takeEvents().contains { $0.name == "recording-did-fail" })
        try recorder.stop()
    }

    /// A container that counts milliseconds would stretch what comes faster.
    @Test(arguments: [("mkv", 1000, true), ("mkv", 2000, false), ("mp4", 2000, true)] as [(String, Int32, Bool)])
    func refusesRatesThatAContainerCannotCount(ending: String, rate: Int32, isTaken: Bool) throws {
        let folder = try ScratchFolder()
        var format = RecorderStreams.format()
        format.video?.frameRate = Rational(rate)
        let error = Result { try StageDriver(recording: #"{ "path": "\#(folder.file("a.\(ending)"))" }"#, format) }
        switch error {
        case .success: #expect(isTaken)
        case .failure(let fault): #expect(!isTaken && "\(fault)".contains("counts time in milliseconds"), "\(fault)")
        }
    }

    /// The folder goes while a segment is written: the next one cannot be made, and those before were somebody's to
    /// remove.
    @Test func saysThatTheFolderIsGone() throws {
        let folder = try ScratchFolder()
        let recorder = try StageDriver(
            recording: #"{ "path": "\#(folder.file("%Y.mp4"))", "segmentSeconds": 1 }"#,
            RecorderStreams.format())
        let units = RecorderStreams.steady(60) { $0 % 25 == 0 }
        for unit in units.prefix(3) { try recorder.send(unit) }
        try FileManager.default.removeItem(atPath: folder.path)
        let error = #expect(throws: FrameHostError.self) { for unit in units.dropFirst(3) { try recorder.send(unit) } }
        #expect(
            error?.description.contains("was removed while it was being written") == true,
            "\(String(describing: error))")
        try recorder.stop()
    }

    /// A second recorder on the file of the first: its own fault, and the first goes on.
    @Test(arguments: [false, true]) func leavesTheFileOfAnotherAlone(overwrite: Bool) throws {
        let folder = try ScratchFolder()
        let options = #"{ "path": "\#(folder.file("a.mp4"))", "overwrite": \#(overwrite), "finalize": "never" }"#
        let recorders = try (0..<2).map { _ in try StageDriver(recording: options, RecorderStreams.format()) }
        let units = RecorderStreams.steady(50) { $0 % 25 == 0 }
        try recorders[0].send(units[0])
        let error = #expect(throws: FrameHostError.self) { try recorders[1].send(units[0]) }
        let reason = overwrite ? "is being written by another recorder" : "exists already"
        #expect(
            error?.description.contains("'\(folder.file("a.mp4"))' \(reason).") == true, "\(String(describing: error))")
        for unit in units.dropFirst() { try recorders[0].send(unit) }
        try recorders[0].finish()
        try recorders[1].stop()
        #expect(try RecorderStreams.packets(of: folder.file("a.mp4")).packets.count == 50)
    }

    @Test func saysWhatToDoAboutEachReason() {
        let texts = [EMFILE, ENOSPC, EROFS, ENOENT].map { RecordingFault.unwritable("a.mp4", $0).description }
        #expect(
            texts == [
                "'a.mp4' cannot be written: Too many open files. Raise the limit of open files (ulimit -n).",
                "'a.mp4' cannot be written: No space left on device. Free some space, or name another disk in 'path'.",
                "'a.mp4' cannot be written: Read-only file system. Name another disk in 'path'.",
                "'a.mp4' cannot be written: No such file or directory. Name another folder in 'path'.",
            ])
        #expect(
            RecordingFault.unwritable("/nowhere/a.mp4", ENOENT).description
                == "'/nowhere/a.mp4' cannot be written: No such file or directory. Create the folder again, or correct 'path'."
        )
    }

    @Test func refusesRetentionOfOneFile() {
        let error = #expect(throws: FrameHostErrors.self) {
            _ = try StageDriver(recording: #"{ "path": "a.mp4", "keepSeconds": 5 }"#, RecorderStreams.format())
        }
        #expect(
            error?.description.hasSuffix(
                "'keepSeconds' removes older files of a pattern, but 'a.mp4' is one file."
                    + " Put a time or a number into 'path', such as %Y-%m-%d or {nnnn}.") == true,
            "\(String(describing: error))")
    }
}
