// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

@Suite struct DescriptorsTests {
    @Test(arguments: [(16_384, 16_064, 16_128), (1024, 704, 768), (256, 176, 192), (100, 69, 75), (1, 1, 1)])
    func clientsGetNoneOfTheLast(limit: Int, readers: Int, control: Int) {
        func most(isControl: Bool) -> Int {
            (0..<limit).first { !Descriptors.mayKeep(Int32($0), isControl: isControl, limit: limit) } ?? limit
        }
        #expect(most(isControl: false) == readers)
        #expect(most(isControl: true) == control)
    }

    /// The number of a new descriptor says how many are in use at least.
    @Test func theKernelGivesTheLowestNumber() throws {
        var files: [Int32] = []
        for _ in 0..<20 { files.append(open("/dev/null", O_RDONLY | O_CLOEXEC)) }
        defer { for file in files { Glibc.close(file) } }
        let last = try #require(files.max())
        let entries = try #require(opendir("/proc/self/fd"))
        defer { closedir(entries) }
        var below = 0
        while let entry = readdir(entries) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 1) { String(cString: $0) }
            }
            if let number = Int32(name), number < last { below += 1 }
        }
        // Other tests close some at any time.
        #expect(below >= 19)
    }

    @Test func saysHowManyAreMissing() {
        let error = #expect(throws: FrameHostError.self) {
            try Descriptors.check(1 << 20, for: "the control server", "its network thread")
        }
        #expect(
            error?.description
                == "the control server needs 1048576 file descriptors for its network thread: Too many open files. Raise the limit of open files (ulimit -n)."
        )
    }

    @Test func startsThreadsAndLetsThemEnd() throws { try ThreadRoom.check(4, for: "a test") }
}
