# pasted on NixOS: the socket, the service, pastedctl and pastec as the Debian package has them, on the Node of
# nixpkgs. With the tarball of a release unpacked beside the configuration:
#   imports = [ ./pasted-1.5.0/deploy/nixos/pasted.nix ];
#   services.pasted = {
#     enable = true;
#     release = ./pasted-1.5.0;
#     settings.SERVICE_CONTACT = "mailto:abuse@paste.example";
#   };
# Secrets are files in /etc/pasted/credentials, each named after its setting; in the store everyone could read them.
# Another place to listen: systemd.sockets.pasted.listenStreams = [ "" "[::]:80" ];
{ config, lib, pkgs, ... }:

let
  cfg = config.services.pasted;
  secrets = [ "SERVICE_PROXY_SECRET" "SERVICE_POW_SECRET" "SERVICE_PKI_CA_PASSWORD" "SERVICE_DB_PASSWORD" ];

  # The files of the release where NixOS looks for them, with the paths that they have in the store.
  package = pkgs.runCommand "pasted" { } ''
    mkdir -p $out/bin $out/lib/pasted $out/lib/systemd/system $out/share/man/man1
    cp -r ${cfg.release}/dist/. $out/lib/pasted/
    cp ${cfg.release}/man/*.1 $out/share/man/man1/
    cp ${cfg.release}/deploy/systemd/pasted.socket ${cfg.release}/deploy/systemd/pasted.service $out/lib/systemd/system/
    cp ${cfg.release}/deploy/systemd/pastedctl ${cfg.release}/dist/client/pastec $out/bin/
    chmod -R u+w $out
    sed -i \
      -e 's|/usr/lib/pasted-runtime/bin:/usr/bin|${cfg.nodejs}/bin|' \
      -e 's|/usr/lib/pasted-runtime/bin/node|${cfg.nodejs}/bin/node|' \
      -e 's#=|/usr/bin/node$#=|${cfg.nodejs}/bin/node#' \
      -e "s|/usr/lib/pasted|$out/lib/pasted|g" \
      -e 's|=/bin/kill |=${pkgs.coreutils}/bin/kill |' \
      $out/lib/systemd/system/pasted.service $out/bin/pastedctl
  '';
in
{
  options.services.pasted = {
    enable = lib.mkEnableOption "the paste service pasted";
    release = lib.mkOption {
      type = lib.types.path;
      description = "The folder of an unpacked release.";
    };
    nodejs = lib.mkOption {
      type = lib.types.package;
      default = pkgs.nodejs_24;
      description = "Node of 24 or later.";
    };
    settings = lib.mkOption {
      type = lib.types.attrsOf (lib.types.oneOf [ lib.types.str lib.types.int ]);
      default = { };
      description = "Settings that are no secrets, by their names; `pastedctl help` explains them.";
    };
  };

  config = lib.mkIf cfg.enable {
    assertions = [
      {
        assertion = lib.versionAtLeast cfg.nodejs.version "24";
        message = "services.pasted.nodejs: expected Node 24 or later, and not ${cfg.nodejs.version}";
      }
      {
        assertion = lib.intersectLists secrets (lib.attrNames cfg.settings) == [ ];
        message = "services.pasted.settings: secrets belong in files in /etc/pasted/credentials";
      }
    ];
    environment.systemPackages = [ package ];
    environment.etc."pasted/pasted.env".text =
      lib.concatStrings (lib.mapAttrsToList (name: value: "${name}=${toString value}\n") cfg.settings);
    systemd.tmpfiles.rules = [ "d /etc/pasted/credentials 0700 root root -" ];
    systemd.packages = [ package ];
    # NixOS enables units by these alone.
    systemd.sockets.pasted.wantedBy = [ "sockets.target" ];
    systemd.services.pasted = {
      wantedBy = [ "multi-user.target" ];
      # NixOS gives each unit a PATH, and the shell of this one looks there for node.
      path = [ cfg.nodejs ];
      restartTriggers = [ config.environment.etc."pasted/pasted.env".source ];
    };
  };
}
