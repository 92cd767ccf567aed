// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import FrameCore

@Suite final class SmallFilesTests {
    private let folder: String

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "small-\(UInt64.random(in: 0 ... .max))").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    private func make(_ name: String, _ text: String) throws {
        try Data(text.utf8).write(to: URL(filePath: "\(folder)/\(name)"))
    }

    /// What reading the file says; checking it must say the same.
    private func fault(_ path: String, mostBytes: Int = 100) -> FrameHostError? {
        var (read, checked): (FrameHostError?, FrameHostError?) = (nil, nil)
        do throws(FrameHostError) {
            _ = try RunFiles.contents(of: path, option: "users", mostBytes: mostBytes)
        } catch { read = error }
        do throws(FrameHostError) {
            try RunFiles.checkReadable(path, option: "users", mostBytes: mostBytes)
        } catch { checked = error }
        #expect(read == checked)
        return read
    }

    @Test func readsAllOfAFileAndFollowsLinks() throws {
        try make("file", "a\0b\n")
        symlink("file", "\(folder)/link")
        for name in ["file", "link"] {
            let path = "\(folder)/\(name)"
            #expect(try RunFiles.contents(of: path, option: "users") == Array("a\0b\n".utf8))
            try RunFiles.checkReadable(path, option: "users")
        }
        try make("empty", "")
        #expect(try RunFiles.contents(of: "\(folder)/empty", option: "users") == [])
    }

    @Test func readsUpToItsLimitAndNoFurther() throws {
        let text = String(repeating: "x", count: 10_000)
        try make("file", text)
        let path = "\(folder)/file"
        #expect(try RunFiles.contents(of: path, option: "users", mostBytes: 10_000) == Array(text.utf8))
        #expect(
            fault(path, mostBytes: 9999)?.description
                == "users: the file '\(path)' must have at most 9999 bytes, but has 10000. Check that 'users' names the right file."
        )
    }

    /// The kernel's own files say that they have 0 bytes.
    @Test func readsAFileOfUnknownSize() throws {
        let path = "/proc/self/status"
        #expect(try RunFiles.contents(of: path, option: "users").starts(with: "Name:".utf8))
        let error = #expect(throws: FrameHostError.self) {
            try RunFiles.contents(of: path, option: "users", mostBytes: 4)
        }
        #expect(
            error?.description
                == "users: the file '/proc/self/status' must have at most 4 bytes, but has more. Check that 'users' names the right file."
        )
    }

    @Test(arguments: [
        ("missing", "the file 'PATH' does not exist. Create it, or correct 'users'."),
        ("dangling", "the file 'PATH' does not exist. Create it, or correct 'users'."),
        (
            "file/below",
            "the file 'PATH' cannot be read: Not a directory. Correct 'users': one of the folders in the path is a file."
        ),
        ("loop", "the file 'PATH' cannot be read: Too many levels of symbolic links. Correct 'users'."),
        (
            String(repeating: "n", count: 256),
            "the file 'PATH' cannot be read: File name too long. Correct 'users'."
        ),
        ("", "'PATH' is a folder. Name a file in it."),
        ("pipe", "'PATH' must be a regular file, but is a pipe. Name a regular file."),
        ("a\nb\u{1b}", "the file 'FOLDER/a\\nb\\u{1b}' does not exist. Create it, or correct 'users'."),
    ]) func saysWhyAFileCannotBeRead(name: String, text: String) throws {
        try make("file", "secret")
        symlink("nowhere", "\(folder)/dangling")
        symlink("loop", "\(folder)/loop")
        // Nobody writes to it: opening it would wait.
        #expect(mkfifo("\(folder)/pipe", 0o600) == 0)
        let path = "\(folder)/\(name)"
        let error = fault(path)
        #expect(error?.code == .invalidConfiguration)
        let whole = text.replacingOccurrences(of: "PATH", with: path).replacingOccurrences(of: "FOLDER", with: folder)
        #expect(error?.description == "users: \(whole)")
    }

    @Test func refusesADevice() {
        #expect(
            fault("/dev/null")?.description
                == "users: '/dev/null' must be a regular file, but is a device. Name a regular file."
        )
    }

    /// The check of a chain would take from the run what stands in the pipe.
    @Test func takesNothingFromAPipe() throws {
        let path = "\(folder)/pipe"
        #expect(mkfifo(path, 0o600) == 0)
        let ends = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        defer { close(ends) }
        #expect(write(ends, "bob:secret", 10) == 10)
        #expect(fault(path)?.what == "'\(path)' must be a regular file, but is a pipe")
        var buffer = [UInt8](repeating: 0, count: 100)
        let count = read(ends, &buffer, 100)
        #expect(count == 10)
    }

    @Test func saysThatAFileMayNotBeRead() throws {
        try make("file", "secret")
        let path = "\(folder)/file"
        #expect(chmod(path, 0) == 0)
        // Root may read every file: this thread alone reads as nobody (setfsuid(2)).
        let isRoot = geteuid() == 0
        let found = try #require(dlsym(nil, "setfsuid"))
        let setUser = unsafeBitCast(found, to: (@convention(c) (uid_t) -> Int32).self)
        if isRoot { _ = setUser(65534) }
        defer { if isRoot { _ = setUser(0) } }
        #expect(
            fault(path)?.description
                == "users: the file '\(path)' cannot be read: Permission denied. Correct 'users', or make the file readable for this user."
        )
    }

    // MARK: Secrets

    @Test func readsASecretFromAFileOrAVariable() throws {
        try make("login", "bob:secret\n")
        let file = try RunFiles.secret(at: "login", option: "users", content: "name:password") { "\(folder)/\($0)" }
        #expect(file == ("bob:secret\n", "the file '\(folder)/login'"))
        let variable = try RunFiles.secret(at: "env:PATH", option: "users", content: "name:password") { $0 }
        #expect(variable.text == String(cString: getenv("PATH")))
        #expect(variable.shown == "the environment variable 'PATH'")
    }

    @Test(arguments: ["bob:hunter2", "bob:hun/ter2", "/9j/4AAQ", "hunter2", String(repeating: "hunter2", count: 100)])
    func quotesNoSecretThatStandsWhereItsFileIsMeant(secret: String) {
        let error = #expect(throws: FrameHostError.self) {
            try RunFiles.secret(at: secret, option: "login", content: "name:password") { "\(folder)/\($0)" }
        }
        #expect(
            error?.description
                == "login: 'login' must name a file or an environment variable, and there is no such file. Write name:password into a file and name that file (a relative path starts at the chain file's folder), or set a variable and write env:NAME."
        )
    }

    @Test func saysWhyAVariableIsNoSecret() {
        func fault(_ name: String) -> FrameHostError? {
            #expect(throws: FrameHostError.self) {
                try RunFiles.secret(at: "env:\(name)", option: "users", content: "name:password", mostBytes: 3) { $0 }
            }
        }
        let unset = fault("FRAMEHOST_NO_SUCH_VARIABLE")
        #expect(unset?.code == .invalidConfiguration)
        #expect(
            unset?.description
                == "users: the environment variable 'FRAMEHOST_NO_SUCH_VARIABLE' is not set. Set it to name:password, or name a file."
        )
        #expect(
            fault("")?.description
                == "users: 'users' is 'env:' without the name of an environment variable. Write env:NAME, or name a file."
        )
        #expect(
            fault("bob:hunter2")?.description
                == "users: the environment variable that 'users' names is not set. Set it to name:password, or name a file."
        )
        #expect(
            fault("PATH")?.description
                == "users: the environment variable 'PATH' must have at most 3 bytes, but has \(strlen(getenv("PATH"))). Check that 'users' names the right variable: it must hold nothing but name:password."
        )
    }
}
