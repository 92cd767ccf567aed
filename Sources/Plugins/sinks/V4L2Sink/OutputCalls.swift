// SPDX-License-Identifier: Apache-2.0

import CV4L2
import FrameCore
import Glibc

/// The kernel's side of an output device: all calls by which this plugin reaches devices.
///
/// Errors come back as numbers (errno), so that a test can answer with any of them. [any thread]
protocol OutputCalls: Sendable {
    /// A descriptor, or the negative errno.
    func open(_ path: String) -> Int32
    func close(_ device: Int32)
    /// 0, or the errno. Called again by the caller on EINTR.
    func control(_ device: Int32, _ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32
    /// Nil where the kernel refuses.
    func map(_ device: Int32, byteCount: Int, offset: Int) -> UnsafeMutableRawPointer?
    func unmap(_ base: UnsafeMutableRawPointer, byteCount: Int)
    /// Waits until the device takes a picture, for at most `milliseconds`.
    func waitForRoom(_ device: Int32, milliseconds: Int32)
    /// Names in a folder; none where it cannot be read.
    func names(in folder: String) -> [String]
    /// The group that a file belongs to.
    func group(of path: String) -> String?
}

/// Which calls the stages of this process use: the kernel's, or those of a test.
enum OutputCallsInUse {
    @TaskLocal static var current: any OutputCalls = KernelOutputCalls()
}

/// The real calls.
struct KernelOutputCalls: OutputCalls {
    func open(_ path: String) -> Int32 {
        let device = SystemCall.retrying { fh_open_device(path) }
        return device >= 0 ? device : -errno
    }

    func close(_ device: Int32) { Glibc.close(device) }

    func control(_ device: Int32, _ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 {
        // For a descriptor that libv4l2 does not know, it is ioctl(2), which Swift cannot call directly.
        fh_v4l2_ioctl(device, request, argument) == 0 ? 0 : errno
    }

    func map(_ device: Int32, byteCount: Int, offset: Int) -> UnsafeMutableRawPointer? {
        fh_v4l2_map(device, byteCount, off_t(offset))
    }

    func unmap(_ base: UnsafeMutableRawPointer, byteCount: Int) { munmap(base, byteCount) }

    func waitForRoom(_ device: Int32, milliseconds: Int32) {
        var entry = pollfd(fd: device, events: Int16(POLLOUT), revents: 0)
        _ = poll(&entry, 1, milliseconds)
    }

    func names(in folder: String) -> [String] {
        guard let handle = opendir(folder) else { return [] }
        defer { closedir(handle) }
        var names: [String] = []
        while let entry = readdir(handle) {
            names.append(
                withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                })
        }
        return names
    }

    func group(of path: String) -> String? {
        var status = Glibc.stat()
        guard stat(path, &status) == 0, status.st_gid != 0, status.st_mode & 0o060 == 0o060,
            let entry = getgrgid(status.st_gid)
        else { return nil }
        return String(cString: entry.pointee.gr_name)
    }
}
