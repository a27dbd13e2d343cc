%% Adds numbers up. "add KEY NUMBER" is answered with the sum of the key, "count" with the number of sums that were sent.
-module(server).
-export([main/0]).

main() ->
    ets:new(sums, [named_table, public]),
    ets:insert(sums, {exchanges, 0}),
    {ok, Listener} = gen_tcp:listen(7000, [{ip, {127, 0, 0, 1}}, binary, {packet, line}, {active, false}, {nodelay, true}]),
    accept(Listener).

accept(Listener) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    Server = spawn(fun() -> receive serve -> serve(Socket) end end),
    ok = gen_tcp:controlling_process(Socket, Server),
    Server ! serve,
    accept(Listener).

serve(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Line} ->
            Answer = answer(binary:split(Line, [<<" ">>, <<"\n">>], [global, trim])),
            ok = gen_tcp:send(Socket, [integer_to_binary(Answer), $\n]),
            serve(Socket);
        {error, closed} ->
            gen_tcp:close(Socket)
    end.

answer([<<"count">>]) ->
    ets:lookup_element(sums, exchanges, 2);
answer([<<"add">>, Key, Number]) ->
    ets:update_counter(sums, exchanges, 1),
    ets:update_counter(sums, Key, binary_to_integer(Number), {Key, 0}).
