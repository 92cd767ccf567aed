// SPDX-License-Identifier: Apache-2.0

import Testing

/// Command lines that lack a word, or have one that cannot be right.
@Suite struct CommandLineTests {
    @Test func withoutAWordItSaysWhatToWrite() throws {
        let outcome = try Program.framehost.run([])
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines == [
                "framehost: needs a chain file or a command. Write `framehost chain.json` to run a chain, or `framehost --help` to list the commands."
            ])
    }

    @Test func ctlWithoutAnActionListsThem() throws {
        let outcome = try Program.framehost.run(["ctl", "127.0.0.1:8080"])
        #expect(outcome.status == 2)
        #expect(outcome.error.contains("One of attach, chain, command, detach, drain,"), "\(outcome.error)")
    }

    /// Port 80 is the scheme's, and nothing listens on it at an address that belongs to nobody here.
    @Test func anAddressWithoutAPortIsSaidToHaveNone() throws {
        let outcome = try Program.framehost.run(["ctl", "127.9.9.9", "status"])
        #expect(outcome.status == 1)
        #expect(
            outcome.errorLines == [
                "http://127.9.9.9: cannot be reached: nothing answers there. Write the address with its port, as the chain prints it when it starts, such as http://127.0.0.1:8080."
            ])
    }

    @Test func aPictureFileNeedsAnEndingThatSetsItsFormat() throws {
        let outcome = try Program.framehost.run(["snapshot", "127.0.0.1:1", "cam", "a.xyz"])
        #expect(outcome.status == 2)
        #expect(
            outcome.error.contains("a.xyz: the name must end in .jpg, .jpeg or .png, which sets the file's format."),
            "\(outcome.error)")
    }

    @Test func anAddressOfNoStreamIsQuoted() throws {
        let outcome = try Program.framehost.run(["latency", "nonsense"])
        #expect(outcome.status == 2)
        #expect(outcome.error.contains("'nonsense' must start with rtsp, "), "\(outcome.error)")
    }
}
