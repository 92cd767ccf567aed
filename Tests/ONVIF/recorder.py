# SPDX-License-Identifier: Apache-2.0
"""What a video recorder does, with the libraries of Home Assistant: `recorder.py find`, or `recorder.py use HOST PORT USER PASSWORD [SECONDS]`. Its answer is
one object of JSON on standard output."""
import asyncio
import datetime
import json
import sys
import time


def find():
    from wsdiscovery import QName
    from wsdiscovery.discovery import ThreadedWSDiscovery

    discovery = ThreadedWSDiscovery()
    discovery.start()
    try:
        services = discovery.searchServices(types=[QName("http://www.onvif.org/ver10/network/wsdl", "NetworkVideoTransmitter", "dp0")], timeout=4)
        return [{"address": one.getEPR(), "urls": one.getXAddrs(), "scopes": [str(scope) for scope in one.getScopes()]} for one in services]
    finally:
        discovery.stop()


async def use(host, port, user, password, seconds):
    from onvif import ONVIFCamera

    camera = ONVIFCamera(host, int(port), user, password, no_cache=True, adjust_time=True)
    said = {}
    try:
        await camera.update_xaddrs()
        said["services"] = dict(camera.xaddrs)
        said["capabilities"] = sorted(name for name, value in (await camera.get_capabilities()).items() if value)
        device = await camera.create_devicemgmt_service()
        information = await device.GetDeviceInformation()
        said["device"] = {"maker": information.Manufacturer, "model": information.Model, "serial": information.SerialNumber,
                          "version": information.FirmwareVersion}
        said["hardware"] = [one.Info.HwAddress for one in await device.GetNetworkInterfaces()]
        media = await camera.create_media_service()
        said["sources"] = [(one.token, one.Resolution.Width, one.Resolution.Height) for one in await media.GetVideoSources()]
        said["profiles"] = []
        for profile in await media.GetProfiles():
            encoder = profile.VideoEncoderConfiguration
            setup = {"Stream": "RTP-Unicast", "Transport": {"Protocol": "RTSP"}}
            uri = await media.GetStreamUri({"StreamSetup": setup, "ProfileToken": profile.token})
            try:
                picture = await camera.get_snapshot(profile.token)
            except Exception as error:  # noqa: BLE001: the test reads it
                picture = str(error).encode()
            said["profiles"].append({
                "token": profile.token, "encoding": encoder.Encoding, "size": [encoder.Resolution.Width, encoder.Resolution.Height],
                "rate": encoder.RateControl.FrameRateLimit, "bitrate": encoder.RateControl.BitrateLimit, "group": encoder.H264.GovLength,
                "uri": uri.Uri, "snapshot": picture.hex() if picture else None})
        if seconds:
            said["events"] = await events(camera, seconds)
    finally:
        await camera.close()
    return said


async def events(camera, seconds):
    """Messages of a PullPoint, until motion has begun and ended."""
    manager = await camera.create_pullpoint_manager(datetime.timedelta(minutes=10), lambda: None)
    point, got, end = manager.get_service(), [], time.monotonic() + seconds
    await manager.set_synchronization_point()
    while time.monotonic() < end and not {"true", "false"} <= {value for _, kind, _, value in got if kind == "Changed"}:
        request = point.create_type("PullMessages")
        request.MessageLimit = 100
        request.Timeout = datetime.timedelta(seconds=5)
        for message in (await point.PullMessages(request)).NotificationMessage:
            content = message.Message._value_1
            data = content.Data.SimpleItem[0]
            got.append((message.Topic._value_1, content.PropertyOperation, data.Name, data.Value))
    await manager.shutdown()
    return got


if __name__ == "__main__":
    if sys.argv[1] == "find":
        print(json.dumps(find()))
    else:
        print(json.dumps(asyncio.run(use(*sys.argv[2:6], float(sys.argv[6]) if len(sys.argv) > 6 else 0))))
