// A real OpenID provider on loopback for the console's tests: everybody may sign in, and the name says who they are.
//
// `ana.approver` is in the group `approvers`; `eve.nobody` is in none. The page that asks for the name is the provider's.
import { createRequire } from "node:module";

const require = createRequire(`${process.env.QM_MODULES}/node_modules/`);
const { Provider } = await import(require.resolve("oidc-provider"));
const port = Number(process.env.QM_ISSUER_PORT);
const issuer = `http://127.0.0.1:${port}`;

const groupsOf = (account) => {
  const group = account.split(".")[1];
  if (group === "both") return ["approvers", "other-approvers"];
  return group === "approver" ? ["approvers"] : group === "admin" ? ["admins"] : [];
};

const provider = new Provider(issuer, {
  clients: [{
    client_id: "console",
    client_secret: "a secret of the console's tests",
    redirect_uris: [process.env.QM_REDIRECT],
    response_types: ["code"],
    grant_types: ["authorization_code"],
    token_endpoint_auth_method: "client_secret_basic",
  }],
  claims: { openid: ["sub"], profile: ["groups", "name"], email: ["email"] },
  conformIdTokenClaims: false,
  cookies: { keys: ["only for these tests"] },
  findAccount: (_, account) => ({ accountId: account, claims: () => ({ sub: account, name: account, groups: groupsOf(account), email: `${account}@example.com` }) }),
});
provider.listen(port, "127.0.0.1", () => console.log(`issuer ${issuer}`));
