// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// Raw video from and to other programs through pipes, and pictures as a source.
@Suite(.needs(.ffmpeg)) struct PipesTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    private static let through = """
        { "stages": [ { "id": "in", "use": "y4m-source" }, { "id": "out", "use": "y4m-sink" } ] }
        """

    /// Endless, as fast as its reader takes it.
    private static func endless(_ sink: String = #"{ "id": "out", "use": "y4m-sink" }"#) -> String {
        #"{ "stages": [ { "id": "pictures", "use": "test-source", "size": "320x240" }, \#(sink) ] }"#
    }

    /// A line of a shell, in the workspace; `$F` is framehost.
    private func shell(_ line: String) throws -> Outcome {
        let program = try #require(Tool.ffmpeg.path)
        return try Program(URL(fileURLWithPath: "/bin/bash")).run(
            ["-c", "set -o pipefail; \(line)"],
            environment: ["F": framehost.executable.path, "FFMPEG": "\(program) -nostdin -v error"],
            folder: workspace.folder.path, timeout: 120)
    }

    // MARK: ffmpeg on both sides

    @Test(arguments: [
        ("yuv420p", "322x242"), ("yuvj420p", "320x240"), ("yuv422p", "322x242"), ("gray", "321x241"),
        ("yuv420p10le", "318x238"),
    ])
    func passesThePicturesOfFFmpegOnByteForByte(pixels: String, size: String) throws {
        try workspace.write("chain.json", Self.through)
        let make =
            "$FFMPEG -f lavfi -i testsrc2=size=\(size):rate=30000/1001 -frames:v 40 -pix_fmt \(pixels) -strict -1"
        let own = try shell("\(make) -f framemd5 -")
        let passed = try shell(
            "\(make) -f yuv4mpegpipe - | $F chain.json --quiet | $FFMPEG -i - -f framemd5 -")
        #expect(own.status == 0 && passed.status == 0, "\(own.error) \(passed.error)")
        let sums = { (outcome: Outcome) in
            outcome.lines.filter { !$0.hasPrefix("#") }.map {
                $0.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            }
        }
        #expect(sums(own).count == 40)
        #expect(sums(own).map(\.last) == sums(passed).map(\.last))
        #expect(own.lines.first { $0.hasPrefix("#tb") } == passed.lines.first { $0.hasPrefix("#tb") })
    }

    @Test func readsAndWritesNamedPipes() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "id": "in", "use": "y4m-source", "path": "in" }, { "id": "out", "use": "y4m-sink", "path": "out" } ] }
            """)
        let outcome = try shell(
            """
            mkfifo in out
            $FFMPEG -f lavfi -i testsrc2=size=64x48 -frames:v 9 -f yuv4mpegpipe -y in &
            $FFMPEG -i out -f framemd5 - & reader=$!
            $F chain.json && wait $reader
            """)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.lines.count { !$0.hasPrefix("#") } == 9)
    }

    // MARK: Standard output

    @Test func writesNothingButTheStreamToStandardOutput() throws {
        try workspace.write("chain.json", Self.endless())
        let outcome = try shell("$F chain.json --frames 5 --verbose --stats figures.json > out.y4m")
        #expect(outcome.status == 0, "\(outcome.error)")
        let header = "YUV4MPEG2 W320 H240 F30:1 Ip A1:1 C420mpeg2 XCOLORRANGE=LIMITED\n"
        let stream = try workspace.data("out.y4m")
        #expect(stream.starts(with: Data(header.utf8)))
        #expect(stream.count == header.utf8.count + 5 * (6 + 320 * 240 * 3 / 2))
        #expect(outcome.error.contains("Done: 5 frames"))
    }

    @Test(arguments: ["-", "/dev/stdout", "/proc/self/fd/1"]) func isOneStagesAlone(name: String) throws {
        let two = """
            { "id": "a", "use": "y4m-sink" }, { "id": "b", "use": "null-sink", "from": "pictures", "dump": "\(name)" }
            """
        try workspace.write("two.json", Self.endless(two))
        let check = try framehost.run(["check", "two.json"], folder: workspace.folder.path)
        #expect(check.status == 2)
        #expect(
            check.error.contains(
                "dump: 'b' writes to standard output, as does 'a'. Write the dump to a file."),
            "\(check.error)")
        let sink =
            name == "-"
            ? #"{ "id": "out", "use": "y4m-sink" }"# : #"{ "id": "out", "use": "null-sink", "dump": "\#(name)" }"#
        try workspace.write("chain.json", Self.endless(sink))
        for flag in ["--events", "--commands"] {
            let outcome = try framehost.run(["chain.json", flag], folder: workspace.folder.path)
            #expect(outcome.status == 2 && outcome.output == "")
            #expect(
                outcome.errorLines == [
                    "\(flag): 'out' writes to standard output, where \(flag == "--events" ? "events" : "answers to commands") would go. Leave \(flag) out, or give 'out' a named pipe (made with 'mkfifo') as its \"\(name == "-" ? "path" : "dump")\"."
                ])
        }
    }

    @Test func endsWithStatusOneWhenItsReaderHasGone() throws {
        try workspace.write("chain.json", Self.endless())
        let outcome = try shell("$F chain.json --quiet | head -c 100000 | wc -c; exit ${PIPESTATUS[0]}")
        #expect(outcome.status == 1)
        #expect(outcome.output.trimmingCharacters(in: .whitespacesAndNewlines) == "100000")
        #expect(outcome.error.contains("the program that reads standard output has closed it."), "\(outcome.error)")
    }

    /// All of the stream has room in the pipe, so that no write fails.
    @Test func endsWithStatusOneWhenItsReaderHasGoneWithoutTheRest() throws {
        try workspace.write("chain.json", Self.endless().replacing("320x240", with: "64x48"))
        let outcome = try shell("$F chain.json --quiet --frames 20 | head -c 100 | wc -c; exit ${PIPESTATUS[0]}")
        #expect(outcome.status == 1)
        #expect(outcome.error.contains("the program that reads standard output has closed it."), "\(outcome.error)")
    }

    @Test func letsOtherBranchesGoOnWhenItsReaderHasGone() throws {
        let branches = """
            { "id": "screen", "use": "y4m-sink", "onError": "continue" },
            { "id": "other", "use": "y4m-sink", "from": "pictures", "path": "all.y4m" }
            """
        try workspace.write("chain.json", Self.endless(branches))
        let outcome = try shell("$F chain.json --quiet --frames 60 | head -c 100000 | wc -c; exit ${PIPESTATUS[0]}")
        #expect(outcome.status == 1)
        let header = "YUV4MPEG2 W320 H240 F30:1 Ip A1:1 C420mpeg2 XCOLORRANGE=LIMITED\n".utf8.count
        #expect(try workspace.data("all.y4m").count == header + 60 * (6 + 320 * 240 * 3 / 2))
    }

    // MARK: Stopping

    /// Its writer says nothing more: one signal ends the chain.
    @Test func endsWhileItWaitsForItsWriter() throws {
        try workspace.write(
            "chain.json", Self.through.replacing(#""y4m-sink""#, with: #""null-sink", "dump": "seen""#))
        let program = try framehost.start(["chain.json"], folder: workspace.folder.path)
        try program.write("YUV4MPEG2 W2 H2 F25:1 Cmono\nFRAME\n1234FRAME\n12")
        try program.waitUntilItTakesSignals()
        let deadline = Date() + 180
        while (try? workspace.data("seen").count) != 4, Date() < deadline { program.listen(seconds: 0.05) }
        let begin = Date()
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.error.contains("Done: 1 frame"))
        #expect(Date().timeIntervalSince(begin) < 60)
    }

    /// Its reader takes nothing: the second signal ends the chain.
    @Test func stopsWhileItsReaderTakesNothing() throws {
        try workspace.write("chain.json", Self.endless(#"{ "id": "out", "use": "y4m-sink", "path": "pipe" }"#))
        func stopped() throws -> Outcome {
            unlink(workspace.path("pipe"))
            #expect(mkfifo(workspace.path("pipe"), 0o600) == 0)
            let reader = open(workspace.path("pipe"), O_RDONLY | O_NONBLOCK)
            defer { close(reader) }
            let program = try framehost.start(["chain.json", "--events"], folder: workspace.folder.path)
            // Until the pipe is full.
            var (unread, before): (Int32, Int32) = (0, 0)
            let deadline = Date() + 180
            repeat {
                before = unread
                program.listen(seconds: 1)
                _ = ioctl(reader, UInt(FIONREAD), &unread)
            } while (unread == 0 || unread != before) && Date() < deadline
            #expect(unread > 0)
            program.send(SIGINT)
            try program.waitForOutput(#""state":"draining""#)
            let begin = Date()
            program.send(SIGINT)
            let outcome = try program.finish()
            #expect(Date().timeIntervalSince(begin) < 60)
            // Not the drain's end, but the signal.
            #expect(!outcome.error.contains("the drain did not finish"), "\(outcome.error)")
            return outcome
        }
        var outcome = try stopped()
        // A busy machine may deny the stage the 800 ms that it has.
        for _ in 0..<4 where outcome.error.contains("did not return within") { outcome = try stopped() }
        #expect(!outcome.error.contains("did not return within"), "\(outcome.error)")
    }

    /// Three seconds are for a reader that comes late, not for one who ends the run.
    @Test func endsAtOnceWhileItWaitsForItsReader() throws {
        try workspace.write("chain.json", Self.endless(#"{ "id": "out", "use": "y4m-sink", "path": "pipe" }"#))
        #expect(mkfifo(workspace.path("pipe"), 0o600) == 0)
        func ended() throws -> Outcome {
            let program = try framehost.start(["chain.json", "--events"], folder: workspace.folder.path)
            try program.waitForOutput(#""state":"starting""#)
            let begin = Date()
            program.send(SIGINT)
            let outcome = try program.finish()
            #expect(Date().timeIntervalSince(begin) < 60)
            return outcome
        }
        var outcome = try ended()
        // On a busy machine the signal may come after the three seconds.
        for _ in 0..<4 where outcome.output.contains("stage-failed") { outcome = try ended() }
        #expect(outcome.status == 0 && !outcome.output.contains("stage-failed"), "\(outcome.error)")
    }

    @Test func saysThatAStreamWasCut() throws {
        try workspace.write("chain.json", Self.through)
        let outcome = try shell(
            "$FFMPEG -f lavfi -i testsrc2=size=64x48 -frames:v 3 -f yuv4mpegpipe - | head -c 10000 | $F chain.json --quiet | wc -c; exit ${PIPESTATUS[2]}"
        )
        #expect(outcome.status == 1)
        #expect(
            outcome.error.contains(
                "standard input ended in the middle of picture 2 (counted from 0): only 710 of its 4608 bytes arrived. Check the program that writes there. All earlier pictures were passed on."
            ),
            "\(outcome.error)")
    }

    @Test func readsStandardInputInOneStageAlone() throws {
        try workspace.write("chain.json", Self.through.replacing(#""y4m-sink""#, with: #""null-sink""#))
        let header = "YUV4MPEG2 W2 H2 F25:1 Cmono\n"
        let commands = try framehost.run(
            ["chain.json", "--commands"], input: header, folder: workspace.folder.path)
        #expect(commands.status == 2)
        #expect(
            commands.errorLines == [
                "--commands: 'in' reads standard input, where commands would come from. Leave --commands out, or give 'in' a named pipe (made with 'mkfifo') as its \"path\"."
            ])
        try workspace.write(
            "two.json",
            """
            { "stages": [ { "id": "a", "use": "y4m-source" }, { "id": "one", "use": "null-sink" },
              { "id": "b", "use": "y4m-source" }, { "id": "other", "use": "null-sink" } ] }
            """)
        let check = try framehost.run(["check", "two.json"], input: header, folder: workspace.folder.path)
        #expect(check.status == 2)
        #expect(check.error.contains("another stage reads standard input already. "), "\(check.error)")
    }

    // MARK: Pictures

    @Test func showsAFolderOfPictures() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "id": "shots", "use": "image-source", "path": "shots", "seconds": 0.2 }, { "id": "out", "use": "y4m-sink" } ] }
            """)
        let outcome = try shell(
            """
            mkdir shots
            $FFMPEG -f lavfi -i testsrc2=size=320x240:rate=2 -frames:v 11 shots/img%d.png
            $F chain.json | $FFMPEG -i - -f framemd5 -
            """)
        #expect(outcome.status == 0, "\(outcome.error)")
        let sums = outcome.lines.filter { !$0.hasPrefix("#") }.compactMap { $0.split(separator: ",").last }
        #expect(sums.count == 55)
        #expect(Set(sums).count == 11)
        for picture in 0..<11 { #expect(Set(sums[(5 * picture)..<(5 * picture + 5)]).count == 1) }
        #expect(outcome.error.contains("shots: 11 pictures."), "\(outcome.error)")
    }

    /// Twenty bytes that say 16000x16000 of 16 bit, a hundred times: counted, and refused before anything of it is taken.
    @Test func refusesAPictureThatMemoryHasNoRoomFor() throws {
        try workspace.write("huge.ppm", "P6\n16000 16000\n65535\n")
        let stages = (0..<100).map {
            #"{ "id": "shot\#($0)", "use": "image-source", "path": "huge.ppm", "size": "64x48", "seconds": 1 }, { "id": "sink\#($0)", "use": "null-sink" }"#
        }
        let one = try workspace.write("one.json", #"{ "stages": [ \#(stages[0]) ] }"#)
        let plan = try JSON(parsing: try framehost.run("check", one, "--json").output)
        // Six bytes a pixel, and four for what is made of it where it has alpha.
        #expect(plan["stages"].first("id", "shot0")["ownBytes"].int! >= 16_000 * 16_000 * 10)
        let all = try workspace.write("all.json", #"{ "stages": [ \#(stages.joined(separator: ", ")) ] }"#)
        let outcome = try framehost.run(["check", all])
        #expect(outcome.status == 2)
        #expect(
            outcome.error.contains(
                /the chain needs 23\d\.\d GiB of memory, and .* has only .* available; the largest part is 2\.\d GiB, memory that 'shot\d+' itself uses\./
            ), "\(outcome.error)")
    }

    @Test func namesDamagedPicturesAndEndsWithStatusOne() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "id": "shots", "use": "image-source", "path": "*.png" }, { "id": "out", "use": "null-sink" } ] }
            """)
        let outcome = try shell(
            """
            $FFMPEG -f lavfi -i testsrc2=size=320x240 -frames:v 3 img%d.png
            truncate -s 3000 img2.png
            $F chain.json
            """)
        #expect(outcome.status == 1)
        #expect(outcome.error.contains("1 picture could not be shown and was left out: 'img2.png'"), "\(outcome.error)")
        #expect(outcome.error.contains("2 frames in"), "\(outcome.error)")
    }
}
