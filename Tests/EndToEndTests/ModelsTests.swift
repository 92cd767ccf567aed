// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `framehost models`: what is there, and fetching over HTTPS from a server that is ours, with certificates that are
/// ours.
@Suite(.serialized) struct ModelsTests {
    private static let name = "yunet-2022mar"
    private static let file = "face_detection_yunet_2022mar.onnx"
    private static let sha256 = "50ef07f702a31741ca46a4c0d947773b64143b9362780237bf0d427d6c79bab7"
    private static let byteCount = 345_478
    private static let models: URL? = {
        let beside = Repository.root.deletingLastPathComponent().appending(path: "shared/models")
        let named = ProcessInfo.processInfo.environment["FRAMEHOST_DATA"].map { URL(fileURLWithPath: $0) }
        return [named, beside].compactMap { $0 }.first {
            FileManager.default.fileExists(atPath: $0.appending(path: file).path)
        }
    }()
    private static let noModels: Comment = "no models: set FRAMEHOST_DATA to a folder with both YuNet models"

    private let workspace: Workspace

    init() throws { workspace = try Workspace() }

    private var source: URL { get throws { try #require(Self.models, Self.noModels) } }

    private func framehost(_ arguments: String..., authority: String? = nil) throws -> Outcome {
        try Program.framehost.run(
            ["models"] + arguments,
            environment: [
                "FRAMEHOST_DATA": workspace.path("data"), "XDG_DATA_HOME": workspace.path("none"),
                "XDG_DATA_DIRS": workspace.path("none"),
                "SSL_CERT_FILE": authority ?? "", "CURL_CA_BUNDLE": "", "no_proxy": "*",
            ])
    }

    private var fetched: String { "data/\(Self.file)" }
    private var part: String { "data/.\(Self.file).part" }

    // MARK: What is there

    @Test func listsWhatIsKnownAndWhereItWasLookedFor() throws {
        let outcome = try framehost()
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(
            outcome.output.contains(
                "yunet-2022mar  is not installed\n  YuNet finds faces for face-effect with OpenCV 4.5.4 to 4.7 (Debian 12). MIT, Copyright (c) 2020 Shiqi Yu.\n"
            ))
        #expect(outcome.output.contains("SHA-256 \(Self.sha256)"))
        #expect(outcome.output.contains("SHA-256 8f2383e4dd3cfbb4553ea8718107fc0423210dc964f9f4280604804ed2552fa4"))
        #expect(outcome.output.contains("Looked in: \(workspace.path("data")), "))
        #expect(outcome.output.contains("https://media.githubusercontent.com/media/opencv/opencv_zoo/"))
    }

    @Test(.enabled(if: models != nil || Tool.isCI, noModels))
    func knowsTheRightFileFromAnotherOfItsName() throws {
        try FileManager.default.createDirectory(atPath: workspace.path("data"), withIntermediateDirectories: true)
        try FileManager.default.copyItem(
            atPath: source.appending(path: Self.file).path, toPath: workspace.path(fetched))
        let right = try framehost("list", "--json")
        #expect(right.status == 0)
        let models = try JSON(parsing: right.output)["models"]
        #expect(models.first("name", Self.name)["state"].string == "right")
        #expect(models.first("name", Self.name)["found"].string == workspace.path(fetched))
        #expect(models.first("name", "yunet-2023mar")["state"].string == "missing")
        try workspace.write("data/face_detection_yunet_2023mar.onnx", "something else")
        let wrong = try framehost()
        #expect(wrong.status == 1)
        #expect(
            wrong.output.contains(
                "yunet-2023mar  has the WRONG HASH: \(workspace.path("data"))/face_detection_yunet_2023mar.onnx has "))
    }

    /// A FIFO would hold up whoever opens it to read.
    @Test(.timeLimit(.minutes(60))) func isNotHeldUpByAFIFO() throws {
        try FileManager.default.createDirectory(atPath: workspace.path("data"), withIntermediateDirectories: true)
        try #require(mkfifo(workspace.path(fetched), 0o600) == 0)
        let outcome = try framehost()
        #expect(outcome.status == 1)
        #expect(
            outcome.output.contains(
                "yunet-2022mar  cannot be read: \(workspace.path(fetched)): it is not a regular file"))
    }

    // MARK: From a folder

    @Test(.enabled(if: models != nil || Tool.isCI, noModels))
    func fetchesFromAFolderAndReplacesNothing() throws {
        let outcome = try framehost("fetch", Self.name, "--from", source.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.output == "Fetched: \(workspace.path(fetched)) (SHA-256 correct).\n")
        #expect(try workspace.data(fetched).count == Self.byteCount)
        #expect(workspace.names(below: "data") == [Self.file], "nothing is left beside it")
        let again = try framehost("fetch", Self.name, "--from", source.path)
        #expect(again.status == 0)
        #expect(again.output == "Already there: \(workspace.path(fetched)) (SHA-256 correct).\n")
        try workspace.write(fetched, "mine")
        let other = try framehost("fetch", Self.name, "--from", source.path)
        #expect(other.status == 1)
        #expect(
            other.error
                == "\(workspace.path(fetched)): another file is here already, and is not replaced. Move that file away, or name another folder with --to.\n"
        )
        #expect(try workspace.data(fetched) == Data("mine".utf8))
    }

    @Test func refusesAFileThatIsNotTheModel() throws {
        try workspace.write("from/\(Self.file)", Data(count: Self.byteCount))
        let same = try framehost("fetch", Self.name, "--from", workspace.path("from"))
        #expect(same.status == 1)
        #expect(
            same.error.contains("\(workspace.path("from"))/\(Self.file): is not yunet-2022mar: its SHA-256 is "),
            "\(same.error)")
        #expect(same.error.contains(" but \(Self.sha256) was expected; nothing was kept."), "\(same.error)")
        try workspace.write("from/\(Self.file)", "short")
        let short = try framehost("fetch", Self.name, "--from", workspace.path("from"))
        #expect(short.error.contains("has 5 bytes, but yunet-2022mar has 345478."), "\(short.error)")
        #expect(!workspace.exists(fetched) && (try? workspace.data(part).count) ?? 0 == 0)
    }

    @Test func leavesWhatIsNotItsOwnAlone() throws {
        try workspace.write("from/\(Self.file)", Data(count: Self.byteCount))
        try workspace.write("mine", "mine")
        try FileManager.default.createDirectory(atPath: workspace.path("data"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: workspace.path(part), withDestinationPath: workspace.path("mine"))
        let link = try framehost("fetch", Self.name, "--from", workspace.path("from"))
        #expect(link.status == 1)
        try FileManager.default.removeItem(atPath: workspace.path(part))
        try FileManager.default.linkItem(atPath: workspace.path("mine"), toPath: workspace.path(part))
        let second = try framehost("fetch", Self.name, "--from", workspace.path("from"))
        #expect(second.status == 1)
        #expect(
            second.error.contains(
                "is in the way, because it is not a regular file, or has other hard links. Move it away"
            ),
            "\(second.error)")
        #expect(try workspace.data("mine") == Data("mine".utf8))
    }

    @Test(.enabled(if: models != nil || Tool.isCI, noModels))
    func saysThatTheDiskIsFull() throws {
        try FileManager.default.createDirectory(atPath: workspace.path("small"), withIntermediateDirectories: true)
        let disk = try SmallDisk(at: workspace.path("small"))
        try disk.empty(room: 131_072)
        let outcome = try disk.run(
            ["models", "fetch", Self.name, "--from", source.path, "--to", workspace.path("small")], in: workspace)
        #expect(outcome.status == 1)
        #expect(
            outcome.error.contains(
                "cannot be written: \(disk.reason). Free 345.5 kB, or name another folder with --to"),
            "\(outcome.error)")
        #expect(!workspace.exists("small/\(Self.file)"))
    }

    @Test(arguments: [
        (["fetch"], "fetch: the model's name is missing. Name yunet-2022mar or yunet-2023mar.\n"),
        (["fetch", "yunet-2022"], "yunet-2022: no such model. Did you mean 'yunet-2022mar'?\n"),
        (
            ["fetch", "yunet-2024mar"],
            "yunet-2024mar: no such model. Name yunet-2022mar or yunet-2023mar: `framehost models` says which one is for which OpenCV.\n"
        ),
        (
            ["fetch", "yunet-2022mar", "--from", "http://localhost/"],
            "--from: the address must start with https://, but starts with http://. Write an address with https://, or name a folder that has face_detection_yunet_2022mar.onnx.\n"
        ),
        (
            ["fetch", "yunet-2022mar", "--from", "/nowhere"],
            "--from: /nowhere cannot be read: No such file or directory. Name a folder with face_detection_yunet_2022mar.onnx, or an address that starts with https://.\n"
        ),
    ])
    func saysWhatIsWrongWithTheCommand(arguments: [String], text: String) throws {
        let outcome = try Program.framehost.run(["models"] + arguments)
        #expect(outcome.status == 2)
        #expect(outcome.error == text)
    }

    // MARK: From a server

    /// The server of Tests/Tools/models-server.py, and the certificate its own is signed by.
    private func withServer(_ body: (_ address: String, _ authority: String, _ server: RunningProgram) throws -> Void)
        throws
    {
        let line = """
            openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=framehost-test-authority -keyout ca.key -out ca.pem \
            -addext basicConstraints=critical,CA:TRUE &&
            openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr &&
            printf 'subjectAltName=DNS:localhost' > server.ext &&
            openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext -out server.pem
            """
        let made = try Program(URL(fileURLWithPath: "/bin/sh")).run(["-c", line], folder: workspace.folder.path)
        try #require(made.status == 0, "\(made.error)")
        let server = try Tool.python.start(
            [
                Repository.root.appending(path: "Tests/Tools/models-server.py").path, source.path,
                workspace.path("server.pem"),
                workspace.path("server.key"),
            ])
        try server.waitForOutput("\n")
        let port = server.output.split(separator: "\n")[0]
        try body("https://localhost:\(port)", workspace.path("ca.pem"), server)
    }

    @Test(.needs(.python), .needs(.openssl), .enabled(if: models != nil || Tool.isCI, noModels))
    func fetchesOverHTTPSAndFollowsARedirect() throws {
        try withServer { address, authority, _ in
            let outcome = try framehost("fetch", Self.name, "--from", "\(address)/moved", authority: authority)
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(try workspace.data(fetched) == Data(contentsOf: source.appending(path: Self.file)))
            #expect(workspace.names(below: "data") == [Self.file])
        }
    }

    @Test(.needs(.python), .needs(.openssl), .enabled(if: models != nil || Tool.isCI, noModels))
    func trustsNoServerThatNobodyVouchesFor() throws {
        try withServer { address, _, server in
            let outcome = try framehost("fetch", Self.name, "--from", "\(address)/plain")
            #expect(outcome.status == 1)
            #expect(
                outcome.error.contains("\(address)/…: cannot be fetched: SSL certificate problem"),
                "\(outcome.error)")
            #expect(!workspace.exists(fetched))
            server.listen(seconds: 0.3)
            #expect(!server.output.contains("/plain/"), "not even the request goes out")
        }
    }

    @Test(.needs(.python), .needs(.openssl), .enabled(if: models != nil || Tool.isCI, noModels))
    func followsNoRedirectToPlainHTTP() throws {
        try withServer { address, authority, _ in
            let outcome = try framehost("fetch", Self.name, "--from", "\(address)/insecure", authority: authority)
            #expect(outcome.status == 1)
            #expect(outcome.error.contains("cannot be fetched: Protocol \"http\""), "\(outcome.error)")
            #expect(!workspace.exists(fetched))
        }
    }

    @Test(.needs(.python), .needs(.openssl), .enabled(if: models != nil || Tool.isCI, noModels))
    func goesOnWhereATransferWasCut() throws {
        try withServer { address, authority, server in
            let outcome = try framehost("fetch", Self.name, "--from", "\(address)/cut", authority: authority)
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(try workspace.data(fetched) == Data(contentsOf: source.appending(path: Self.file)))
            try server.waitForOutput("/cut/\(Self.file) -\n/cut/\(Self.file) bytes=\(Self.byteCount / 3)-\n")
        }
    }

    @Test(.needs(.python), .needs(.openssl), .enabled(if: models != nil || Tool.isCI, noModels))
    func goesOnFromWhatAnEarlierCommandLeft() throws {
        try workspace.write(part, Data(contentsOf: source.appending(path: Self.file)).prefix(200_000))
        try withServer { address, authority, server in
            let outcome = try framehost("fetch", Self.name, "--from", "\(address)/plain/", authority: authority)
            #expect(outcome.status == 0, "\(outcome.error)")
            try server.waitForOutput("/plain/\(Self.file) bytes=200000-\n")
            #expect(try workspace.data(fetched) == Data(contentsOf: source.appending(path: Self.file)))
        }
    }

    @Test(.needs(.python), .needs(.openssl), .enabled(if: models != nil || Tool.isCI, noModels))
    func beginsAnewWhereTheServerDoesNotGoOn() throws {
        try withServer { address, authority, _ in
            let outcome = try framehost("fetch", Self.name, "--from", "\(address)/norange", authority: authority)
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(try workspace.data(fetched) == Data(contentsOf: source.appending(path: Self.file)))
        }
    }

    @Test(.needs(.python), .needs(.openssl), .enabled(if: models != nil || Tool.isCI, noModels))
    func keepsNothingOfAWrongFile() throws {
        try withServer { address, authority, _ in
            for (way, words) in [
                ("wrong", "is not yunet-2022mar: its SHA-256 is "),
                ("long", "gives more than the 345478 bytes that yunet-2022mar has."),
                ("gone", "the server answers with HTTP status 404."),
            ] {
                let outcome = try framehost("fetch", Self.name, "--from", "\(address)/\(way)", authority: authority)
                #expect(outcome.status == 1)
                #expect(outcome.error.contains("\(address)/…: \(words)"), "\(outcome.error)")
                #expect(!workspace.exists(fetched) && (try? workspace.data(part).count) ?? 0 == 0)
            }
        }
    }

    // MARK: Cost

    /// Running a chain loads neither libcurl nor what calls it.
    @Test func aChainThatRunsNeverLoadsIt() throws {
        let chain = try workspace.write("chain.json", Chains.short)
        let outcome = try Program.framehost.run([chain], environment: ["LD_DEBUG": "libs"])
        #expect(outcome.status == 0)
        #expect(outcome.error.contains("libFrameCore.so"), "the loader speaks")
        #expect(!outcome.error.contains("libcurl") && !outcome.error.contains("libCFetch"))
    }
}
