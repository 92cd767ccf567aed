// SPDX-License-Identifier: Apache-2.0

import CV4L2
import FrameCore
import Glibc

/// The real calls. Devices go through libv4l2 without its conversions: pictures stay as the driver makes them, and
/// cameras that only have the multi-planar interface look like others (libv4l's mplane plugin).
struct KernelCalls: DeviceCalls {
    /// Keeps libv4l2 from writing to standard error. Failures come back as an errno and are reported by the caller.
    private static let isQuiet: Bool = {
        if let nowhere = fopen("/dev/null", "we") { fh_v4l2_log_to(nowhere) }
        return true
    }()

    func open(_ path: String) -> Int32 {
        _ = Self.isQuiet
        let device = SystemCall.retrying { fh_open_device(path) }
        guard device >= 0 else { return -errno }
        // A device that the library does not support is used directly: the library passes its calls through.
        _ = v4l2_fd_open(device, V4L2_DISABLE_CONVERSION)
        return device
    }

    func close(_ device: Int32) { _ = v4l2_close(device) }

    func control(_ device: Int32, _ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 {
        fh_v4l2_ioctl(device, request, argument) == 0 ? 0 : errno
    }

    func map(_ device: Int32, byteCount: Int, offset: Int) -> UnsafeMutableRawPointer? {
        fh_v4l2_map(device, byteCount, off_t(offset))
    }

    func unmap(_ base: UnsafeMutableRawPointer, byteCount: Int) { _ = v4l2_munmap(base, byteCount) }

    func wait(_ device: Int32, milliseconds: Int32) -> Int32 {
        var entry = pollfd(fd: device, events: Int16(POLLIN), revents: 0)
        let result = poll(&entry, 1, milliseconds)
        return result < 0 ? -errno : result == 0 ? 0 : Int32(entry.revents)
    }

    let processors = Processors.usable

    // MARK: Files

    func names(in folder: String) -> [String] {
        guard let handle = opendir(folder) else { return [] }
        defer { closedir(handle) }
        var names: [String] = []
        while let entry = readdir(handle) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    func realPath(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    func link(_ path: String) -> String? {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(PATH_MAX)) { buffer in
            let count = buffer.baseAddress!.withMemoryRebound(to: CChar.self, capacity: buffer.count) {
                readlink(path, $0, buffer.count)
            }
            return count < 0 ? nil : String(decoding: buffer.prefix(count), as: UTF8.self)
        }
    }

    func text(of file: String) -> String? {
        let descriptor = SystemCall.retrying { Glibc.open(file, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { return nil }
        defer { Glibc.close(descriptor) }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1024) { buffer in
            let count = read(descriptor, buffer.baseAddress!, buffer.count)
            guard count > 0 else { return nil }
            return String(decoding: buffer.prefix(count).filter { $0 >= 32 }, as: UTF8.self)
        }
    }

    func group(of path: String) -> String? {
        var status = Glibc.stat()
        guard stat(path, &status) == 0, status.st_gid != 0, status.st_mode & 0o060 == 0o060,
            let entry = getgrgid(status.st_gid)
        else { return nil }
        return String(cString: entry.pointee.gr_name)
    }
}
